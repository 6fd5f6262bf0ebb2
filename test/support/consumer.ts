import type { Received } from "./receiver.ts"

/** Where the event of a match stands. */
export interface Place {
  readonly monitor: string
  readonly block: number
  readonly hash: string
  readonly index: number
}

interface Identity {
  /** The match's. */
  readonly id: string
  /** Counts from 1; a match that was taken back and is there again has the next one. */
  readonly life: number
  readonly webhookId: string
  readonly bytes: string
}

/** What a webhook received. */
export type Delivery =
  | (Identity & { readonly kind: "match"; readonly place: Place })
  | (Identity & { readonly kind: "retracted" })

const WEBHOOK_ID = /^(.+?)(?:-(\d+))?(-r)?$/

const readDelivery = ({ order, headers, body }: Received): Delivery => {
  const bytes = body.toString()
  const { type, ...content } = JSON.parse(bytes)
  const webhookId = headers["webhook-id"] ?? ""
  const [, id = "", life = "1", retraction] = WEBHOOK_ID.exec(webhookId) ?? []
  const identity = { id, life: Number(life), webhookId, bytes }
  if (type === "match" && content.id === id && retraction === undefined) {
    const { block, log } = content.event
    const place = { monitor: content.monitor, block: Number(block.number), hash: block.hash, index: Number(log.index) }
    return { ...identity, kind: "match", place }
  }
  if (type === "retracted" && content.match_id === id && retraction !== undefined) {
    return { ...identity, kind: "retracted" }
  }
  throw new Error(`request ${order} with the webhook-id ${webhookId} is no delivery that a consumer knows: ${bytes}`)
}

/** The deliveries to one path in the order of arrival; throws at one whose `webhook-id` and body do not belong together. */
export const deliveriesAt = (requests: ReadonlyArray<Received>, path: string): ReadonlyArray<Delivery> =>
  requests.filter((request) => request.path === path).map(readDelivery)

/** The requests that were answered 2xx. A consumer may go by these alone, or by all that arrived. */
export const accepted = (requests: ReadonlyArray<Received>): ReadonlyArray<Received> =>
  requests.filter(({ answer }) => answer.kind === "respond" && answer.status >= 200 && answer.status < 300)

/** The deliveries without those whose `webhook-id` came before. */
export const firstOf = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<Delivery> => {
  const seen = new Set<string>()
  return deliveries.filter(({ webhookId }) => !seen.has(webhookId) && seen.add(webhookId))
}

/** What a consumer holds: the matches that it has, by their ids. */
export type Held = ReadonlyMap<string, Place>

/** What a consumer holds that applies each delivery as it comes: a match is added, a retracted one removed. */
export const heldAfter = (deliveries: ReadonlyArray<Delivery>): Held => {
  const held = new Map<string, Place>()
  for (const delivery of deliveries) {
    if (delivery.kind === "match") held.set(delivery.id, delivery.place)
    else held.delete(delivery.id)
  }
  return held
}

/** What a consumer holds that first drops each delivery whose `webhook-id` it has seen. */
export const heldOnceAfter = (deliveries: ReadonlyArray<Delivery>): Held => heldAfter(firstOf(deliveries))

const keyOf = ({ monitor, hash, index }: Place): string => `${monitor} ${hash} ${index}`

/** Where what a consumer holds differs from what is canonical. */
export const heldFaults = (held: Held, canonical: ReadonlyArray<Place>): ReadonlyArray<string> => {
  const due = new Map(canonical.map((place) => [keyOf(place), place]))
  const found = new Map<string, string>()
  const faults: Array<string> = []
  for (const [id, place] of held) {
    const key = keyOf(place)
    const other = found.get(key)
    if (!due.has(key)) faults.push(`not canonical: ${id}, ${key} of block ${place.block}`)
    else if (other !== undefined) faults.push(`two ids for ${key}: ${other} and ${id}`)
    found.set(key, id)
  }
  for (const [key, { block }] of due) if (!found.has(key)) faults.push(`lost: ${key} of block ${block}`)
  return faults
}
