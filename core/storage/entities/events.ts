import { defineEntity, p } from "@mikro-orm/core"

/** What happened: a match, its retraction, or what a program or an action emitted. */
export const EventEntity = defineEntity({
  name: "Event",
  tableName: "blockwatcher_events",
  properties: {
    seq: p.bigint("number").primary(),
    id: p.text(),
    type: p.text(),
    version: p.bigint("number"),
    encoding: p.bigint("number").nullable(),
    payload: p.text().nullable(),
    tenant: p.text().nullable(),
    traceparent: p.text().nullable(),
    depth: p.bigint("number"),
    createdAt: p.bigint("number").fieldName("created_at"),
    matchPk: p.bigint("number").fieldName("match_pk").nullable(),
    matchId: p.text().fieldName("match_id").nullable(),
    life: p.bigint("number").nullable(),
    kind: p.text().nullable(),
    network: p.text().nullable(),
    primaryPos: p.bigint("number").fieldName("primary_pos").nullable(),
    emission: p.text().nullable(),
  },
})

/** A delivery of an event to one action. */
export const ActionDeliveryEntity = defineEntity({
  name: "ActionDelivery",
  tableName: "blockwatcher_action_deliveries",
  properties: {
    pk: p.bigint("number").primary(),
    eventSeq: p.bigint("number").fieldName("event_seq"),
    action: p.text(),
    matchId: p.text().fieldName("match_id").nullable(),
    state: p.text(),
    attempts: p.bigint("number"),
    due: p.bigint("number"),
    leaseUntil: p.bigint("number").fieldName("lease_until").nullable(),
    holder: p.text().nullable(),
    code: p.text().nullable(),
    reason: p.text().nullable(),
    reader: p.bigint("number").nullable(),
    createdAt: p.bigint("number").fieldName("created_at"),
    settledAt: p.bigint("number").fieldName("settled_at").nullable(),
  },
})

/** That a delivery, known by its key, was dealt with. */
export const HandledDeliveryEntity = defineEntity({
  name: "HandledDelivery",
  tableName: "blockwatcher_handled_deliveries",
  properties: { delivery: p.text().primary(), handledAt: p.bigint("number").fieldName("handled_at") },
})

/** A provider call of a delivery, in the order of its calls: intended, or done with its result. */
export const ProviderCallEntity = defineEntity({
  name: "ProviderCall",
  tableName: "blockwatcher_provider_calls",
  properties: {
    delivery: p.text().primary(),
    place: p.bigint("number").primary(),
    operation: p.text(),
    argumentsHash: p.text().fieldName("arguments_hash"),
    state: p.text(),
    result: p.text().nullable(),
    sentAt: p.bigint("number").fieldName("sent_at"),
  },
})

/** The number of the newest run about a match, or of a delivery about none. */
export const RunEntity = defineEntity({
  name: "Run",
  tableName: "blockwatcher_runs",
  properties: { subject: p.text().primary(), number: p.bigint("number") },
})
