import { Effect } from "effect"
import { type DeliveryError, Permanent, RateLimited, StorageError, TooLarge, Transient } from "../../core/index.ts"
import type { Fault } from "../../server/devnet/simulated/node.ts"
import type { Moods } from "./moods.ts"
import { type Random, shareOf } from "../../server/devnet/simulated/random.ts"
import type { SinkSetup } from "./setup.ts"

/** What a sink does with an attempt. */
export interface Reaction {
  readonly delayMs: number
  readonly accepts: boolean
  readonly error: DeliveryError | null
}

/** What the seed and the attempt alone decide. */
export const reactionOf = (
  { sink }: Moods,
  setup: Pick<SinkSetup, "isReliable" | "splits">,
  attempt: { readonly salt: string; readonly isDigest: boolean },
): Reaction => {
  const share = (what: string) => shareOf(`${attempt.salt} ${what}`)
  const delayMs = share("slow") < sink.slow ? 20 + Math.floor(share("delay") * 100) : 0
  const refuses = (error: DeliveryError): Reaction => ({ delayMs, accepts: false, error })
  let left = share("error")
  if ((left -= sink.transient) < 0) {
    return { delayMs, accepts: share("unknown") < sink.unknown, error: new Transient({ reason: "simulated" }) }
  }
  if ((left -= sink.rateLimited) < 0) {
    return refuses(new RateLimited({ reason: "simulated", retryAfterMs: share("after") < 0.5 ? null : 20 }))
  }
  if (!setup.isReliable && (left -= sink.permanent) < 0) return refuses(new Permanent({ reason: "simulated" }))
  if (setup.splits && attempt.isDigest && (left -= sink.tooLarge) < 0)
    return refuses(new TooLarge({ reason: "simulated" }))
  return { delayMs, accepts: true, error: null }
}

/** What becomes of a write before it is made. */
export const storageFault = (
  { storage }: Moods,
  random: Random,
  operation: string,
): Effect.Effect<void, StorageError> => {
  if (random.chance(storage.refused)) {
    return Effect.fail(new StorageError({ operation, reason: "simulated", retryable: true }))
  }
  return random.chance(storage.late) ? Effect.sleep(random.between(10, 100)) : Effect.void
}

const FAULTS: ReadonlyArray<Fault> = [
  { error: { code: -32000, message: "simulated" } },
  { error: { code: -32005, message: "limit exceeded" } },
  { http: { status: 503, body: "simulated" } },
  { http: { status: 429, body: "simulated", headers: { "retry-after": "0" } } },
  "drop",
]

export const rpcFault = ({ rpc }: Moods, random: Random): Fault | undefined =>
  random.chance(rpc.failing) ? random.pick(FAULTS) : undefined
