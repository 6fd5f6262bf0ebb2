import {
  accepted,
  deliveriesAt,
  type Delivery,
  firstOf,
  heldAfter,
  heldFaults,
  heldOnceAfter,
  type Place,
} from "./consumer.ts"
import type { Received } from "./receiver.ts"

/** Deliveries that repeat a `webhook-id` with another body. */
export const byteFaults = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<string> => {
  const first = new Map<string, string>()
  return deliveries.flatMap(({ webhookId, bytes }) => {
    const before = first.get(webhookId)
    if (before === undefined) first.set(webhookId, bytes)
    return before === undefined || before === bytes ? [] : [`other bytes for ${webhookId}: ${bytes}, before ${before}`]
  })
}

/**
 * Deliveries that come when their life cannot be: a match after its retraction or before the retraction of an earlier
 * life, and a retraction of another life than the present one. A retraction of a match that never came is none.
 */
export const lifeFaults = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<string> => {
  const lives = new Map<string, { readonly life: number; readonly ended: boolean }>()
  return deliveries.flatMap(({ kind, id, life, webhookId }) => {
    const present = lives.get(id)
    const ended = kind === "retracted"
    const isNew = present === undefined || (present.ended && life > present.life)
    if (!isNew && life !== present.life) {
      return [`${webhookId} came while life ${present.life} ${present.ended ? "had been taken back" : "was there"}`]
    }
    if (!isNew && present.ended && !ended) return [`${webhookId} came after its retraction`]
    lives.set(id, { life, ended })
    return []
  })
}

/**
 * Retractions of lives that had not come by then. These are right where an attempt may have begun that never arrived
 * (the sender was killed, or nobody listened), and nowhere else.
 */
export const unseenRetractions = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  return deliveries.flatMap(({ kind, id, life, webhookId }) => {
    if (kind === "match") seen.add(`${id} ${life}`)
    return kind === "match" || seen.has(`${id} ${life}`) ? [] : [`${webhookId} came, and its match had not`]
  })
}

/** Whether two blocks may be canonical at the same time, by their hashes. */
export type AreOnOneFork = (hash: string, other: string) => boolean

/** Blocks that were replaced, and those that replaced them; by their hashes. */
export interface Phase {
  readonly gone: ReadonlyArray<string>
  readonly came: ReadonlyArray<string>
}

/** Goes by what a test knows of its reorganisations, where no chain can tell. */
export const byPhases =
  (phases: ReadonlyArray<Phase>): AreOnOneFork =>
  (hash, other) =>
    !phases.some(
      ({ gone, came }) =>
        (gone.includes(hash) && came.includes(other)) || (gone.includes(other) && came.includes(hash)),
    )

/**
 * Matches that came while one of another fork was held: the retractions of an invalidation come before whatever
 * replaces what they take back.
 */
export const forkFaults = (deliveries: ReadonlyArray<Delivery>, areOnOneFork: AreOnOneFork): ReadonlyArray<string> => {
  const held = new Map<string, Place>()
  return firstOf(deliveries).flatMap((delivery) => {
    if (delivery.kind === "retracted") {
      held.delete(delivery.id)
      return []
    }
    const { id, webhookId, place } = delivery
    // What is held is of one fork: its newest block speaks for all.
    const newest = [...held.values()].reduce<Place | undefined>((a, b) => (a && a.block >= b.block ? a : b), undefined)
    held.set(id, place)
    return newest === undefined || areOnOneFork(place.hash, newest.hash)
      ? []
      : [`${webhookId} of block ${place.block} ${place.hash} came while one of ${newest.block} ${newest.hash} was held`]
  })
}

/**
 * Everything that is wrong with what one path, which hears of one network, received, once nothing is owed any more:
 * repetitions, lives and forks, and what consumers hold that go by all that arrived or by what they answered 2xx, and
 * that drop what they have seen before or do not.
 */
export const consumerFaults = (
  requests: ReadonlyArray<Received>,
  path: string,
  expected: { readonly canonical: ReadonlyArray<Place>; readonly areOnOneFork: AreOnOneFork },
): ReadonlyArray<string> => {
  const all = deliveriesAt(requests, path)
  const taken = deliveriesAt(accepted(requests), path)
  const held = {
    all: heldAfter(all),
    once: heldOnceAfter(all),
    taken: heldAfter(taken),
    takenOnce: heldOnceAfter(taken),
  }
  return [
    ...byteFaults(all),
    ...lifeFaults(all),
    ...forkFaults(all, expected.areOnOneFork),
    ...Object.entries(held).flatMap(([name, places]) =>
      heldFaults(places, expected.canonical).map((fault) => `${name}: ${fault}`),
    ),
  ]
}
