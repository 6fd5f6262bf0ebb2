import { defineEntity, p } from "@mikro-orm/core"

/** A network's progress, ownership and feed position. It outlives the network, so that positions never restart. */
export const PipelineEntity = defineEntity({
  name: "Pipeline",
  tableName: "pipelines",
  properties: {
    network: p.text().primary(),
    epoch: p.bigint("number"),
    leaseUntil: p.bigint("number").fieldName("lease_until").default(0),
    leaseOwner: p.text().fieldName("lease_owner").nullable(),
    mintedPrimary: p.bigint("number").fieldName("minted_primary").nullable(),
    mintedSecondary: p.bigint("number").fieldName("minted_secondary").nullable(),
    checkpointPrimary: p.bigint("number").fieldName("checkpoint_primary").nullable(),
    checkpointSecondary: p.bigint("number").fieldName("checkpoint_secondary").nullable(),
    checkpointAt: p.bigint("number").fieldName("checkpoint_at").default(0),
    feedPosition: p.bigint("number").fieldName("feed_position").default(0),
    startPrimary: p.bigint("number").fieldName("start_primary").nullable(),
    startSecondary: p.bigint("number").fieldName("start_secondary").nullable(),
    highPrimary: p.bigint("number").fieldName("high_primary").nullable(),
    sweptPrimary: p.bigint("number").fieldName("swept_primary").nullable(),
    prunedPrimary: p.bigint("number").fieldName("pruned_primary").nullable(),
    paused: p.integer().default(0),
    invalidations: p.bigint("number").default(0),
    deleted: p.integer().default(0),
  },
})

/**
 * One life of a match. `position` is null when the feed does not (or no longer) hold it. `kept_…` is the cursor of the
 * newest member of its emission.
 */
export const MatchEntity = defineEntity({
  name: "Match",
  tableName: "matches",
  properties: {
    pk: p.bigint("number").primary().autoincrement(false),
    id: p.text(),
    life: p.bigint("number"),
    network: p.text(),
    monitor: p.text(),
    revision: p.text(),
    primaryPos: p.bigint("number").fieldName("primary_pos"),
    secondaryPos: p.bigint("number").fieldName("secondary_pos"),
    eventTime: p.bigint("number").fieldName("event_time").nullable(),
    position: p.bigint("number").nullable(),
    late: p.integer(),
    ended: p.integer(),
    endedPosition: p.bigint("number").fieldName("ended_position").nullable(),
    emission: p.text().nullable(),
    keptPrimary: p.bigint("number").fieldName("kept_primary").nullable(),
    keptSecondary: p.bigint("number").fieldName("kept_secondary").nullable(),
    payload: p.text(),
  },
})

/** A delivery of a match, or of its retraction, to one sink. It is owed while `settled_at` is null. */
export const DeliveryEntity = defineEntity({
  name: "Delivery",
  tableName: "deliveries",
  properties: {
    seq: p.bigint("number").primary().autoincrement(false),
    network: p.text(),
    sink: p.text(),
    matchPk: p.bigint("number").fieldName("match_pk"),
    kind: p.text(),
    primaryPos: p.bigint("number").fieldName("primary_pos"),
    secondaryPos: p.bigint("number").fieldName("secondary_pos"),
    state: p.text(),
    attempts: p.bigint("number"),
    slot: p.integer(),
    due: p.bigint("number").nullable(),
    digest: p.text().nullable(),
    createdAt: p.bigint("number").fieldName("created_at"),
    settledAt: p.bigint("number").fieldName("settled_at").nullable(),
    died: p.bigint("number").nullable(),
    deadMonitor: p.text().fieldName("dead_monitor").nullable(),
    deadKind: p.text().fieldName("dead_kind").nullable(),
    reason: p.text().nullable(),
  },
})

/** A hit of a gated monitor: held, or consumed by an emission; for `max_once`, the hits that opened a window. */
export const GateHitEntity = defineEntity({
  name: "GateHit",
  tableName: "gate_hits",
  properties: {
    pk: p.bigint("number").primary().autoincrement(false),
    network: p.text(),
    monitor: p.text(),
    revision: p.text(),
    gateKey: p.text().fieldName("gate_key"),
    id: p.text(),
    primaryPos: p.bigint("number").fieldName("primary_pos"),
    secondaryPos: p.bigint("number").fieldName("secondary_pos"),
    eventTime: p.bigint("number").fieldName("event_time"),
    windowMs: p.bigint("number").fieldName("window_ms"),
    consumed: p.integer(),
    keptPrimary: p.bigint("number").fieldName("kept_primary"),
    keptSecondary: p.bigint("number").fieldName("kept_secondary"),
    payload: p.text(),
  },
})

/** How many dead letters there are, kept by triggers. */
export const DeadLetterCountEntity = defineEntity({
  name: "DeadLetterCount",
  tableName: "dead_letter_counts",
  properties: {
    network: p.text().primary(),
    sink: p.text().primary(),
    monitor: p.text().primary(),
    kind: p.text().primary(),
    letters: p.bigint("number"),
  },
})

/** What a network is taking back; there is at most one. */
export const InvalidationEntity = defineEntity({
  name: "Invalidation",
  tableName: "invalidations",
  properties: {
    network: p.text().primary(),
    fromPrimary: p.bigint("number").fieldName("from_primary"),
    fromSecondary: p.bigint("number").fieldName("from_secondary"),
    cause: p.text(),
    retracted: p.integer().default(0),
  },
})

/** What a source needs to verify a resume: the hash of a primary. */
export const AnchorEntity = defineEntity({
  name: "Anchor",
  tableName: "anchors",
  properties: {
    network: p.text().primary(),
    primaryPos: p.bigint("number").fieldName("primary_pos").primary(),
    hash: p.text(),
  },
})

/** What a source must know after a restart, and where it found it. */
export const SourceRecordEntity = defineEntity({
  name: "SourceRecord",
  tableName: "source_records",
  properties: {
    network: p.text().primary(),
    key: p.text().fieldName("record_key").primary(),
    value: p.text().primary(),
    primaryPos: p.bigint("number").fieldName("primary_pos"),
    secondaryPos: p.bigint("number").fieldName("secondary_pos"),
  },
})

/** The newest feed position of a monitor and kind that is no longer kept. */
export const FeedTrimEntity = defineEntity({
  name: "FeedTrim",
  tableName: "feed_trims",
  properties: {
    network: p.text().primary(),
    monitor: p.text().primary(),
    kind: p.text().primary(),
    position: p.bigint("number"),
  },
})

/**
 * The last value taken of `match` (keys of matches), `delivery` (their `seq`) and `died`; never given out twice. And
 * `resources`, the version of all resources.
 */
export const CounterEntity = defineEntity({
  name: "Counter",
  tableName: "counters",
  properties: { name: p.text().primary(), value: p.bigint("number") },
})
