import { hash } from "node:crypto"
import { canonicalJson } from "../model/canonical.ts"

const hashed = (...parts: ReadonlyArray<string | number>): string => hash("sha256", JSON.stringify(parts), "hex")

/** A delivery of a store, by its number there. */
export interface DeliveryName {
  readonly pk: number
  /** The event's id. */
  readonly event: string
  readonly action: string
}

/**
 * What a delivery is known by in every table: the same on each run, and no other delivery's. The number is part of it, for
 * the events of a network that is deleted and made again have the ids of those before.
 */
export const deliveryKey = (store: string, { pk, event, action }: DeliveryName): string =>
  hashed(store, pk, event, action)

/** The idempotency key of a delivery's call, which is the `place`-th, from 0. */
export const callKey = (delivery: string, place: number): string => hashed(delivery, place)

/** Tells the arguments of calls apart, whatever the order of their keys. */
export const argumentsHash = (json: unknown): string => hash("sha256", canonicalJson(json) ?? "", "hex")
