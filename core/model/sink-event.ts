import { hash } from "node:crypto"
import type { JsonObject } from "./fields.ts"

/** A monitor's hit that passed its gate. `id` is the same whenever the same event is matched again. */
export interface Match {
  readonly id: string
  readonly monitor: string
  readonly network: string
  readonly event: JsonObject
}

/** What a sink receives: a closed set. `Retracted` takes a match back, `Digest` holds several matches. */
export type SinkEvent =
  | ({ readonly type: "match" } & Match)
  | { readonly type: "retracted"; readonly match_id: string }
  | { readonly type: "digest"; readonly matches: ReadonlyArray<Match> }

/** The stored form of a match: the JSON of `{id, monitor, network, event}`, byte for byte what every attempt sends. */
export const encodePayload = (match: Match): string =>
  JSON.stringify({ id: match.id, monitor: match.monitor, network: match.network, event: match.event })

/** The wire body of a match, from its stored payload. */
export const matchBody = (payload: string): string => `{"type":"match",${payload.slice(1)}`

/** The wire body of a retraction. */
export const retractedBody = (matchId: string): string => JSON.stringify({ type: "retracted", match_id: matchId })

/** The wire body of a digest, from the stored payloads of its members. */
export const digestBody = (payloads: ReadonlyArray<string>): string =>
  `{"type":"digest","matches":[${payloads.join(",")}]}`

/** Identifies a delivery for its receiver: stable over attempts, different for each life of a match. */
export const deliveryId = (matchId: string, life: number, kind: "match" | "retracted"): string =>
  `${matchId}${life === 1 ? "" : `-${life}`}${kind === "retracted" ? "-r" : ""}`

/** Identifies the delivery of a digest: the same for the same members in the same lives, whatever else they were part of. */
export const digestId = (members: ReadonlyArray<{ readonly matchId: string; readonly life: number }>): string =>
  hash("sha256", members.map(({ matchId, life }) => deliveryId(matchId, life, "match")).join(" "), "hex")
