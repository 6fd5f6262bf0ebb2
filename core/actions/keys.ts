import { hash } from "node:crypto"
import { canonicalJson } from "../model/canonical.ts"

const hashed = (...parts: ReadonlyArray<string | number>): string => hash("sha256", JSON.stringify(parts), "hex")

/** What a delivery is known by in every table: the same on each run, and no other delivery's. */
export const deliveryKey = (store: string, event: string, action: string): string => hashed(store, event, action)

/** The idempotency key of a delivery's call, which is the `place`-th, from 0. */
export const callKey = (delivery: string, place: number): string => hashed(delivery, place)

/** Tells the arguments of calls apart, whatever the order of their keys. */
export const argumentsHash = (json: unknown): string => hash("sha256", canonicalJson(json) ?? "", "hex")
