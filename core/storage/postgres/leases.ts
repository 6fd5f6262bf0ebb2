import { Effect, Exit, Result } from "effect"
import type { Held } from "../error.ts"
import type { Lease, Owner } from "../storage.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"

/** The database's clock, in ms, now that the row is locked: processes on other machines go by it too. */
const clockOf = ({ session }: Group): Effect.Effect<number, QueryFailed> =>
  Effect.map(session.all<readonly [number]>(sql.clock, []), ([row]) => row![0])

/** Takes a network over, if its lease allows it. */
export const claim = Effect.fnUntraced(function* (
  group: Group,
  lease: Lease,
): Effect.fn.Return<Exit.Exit<Owner, Held>, QueryFailed> {
  const { session, network } = group
  const exists = (yield* session.all(sql.exists, [network.id])).length > 0
  const claimed = network.claim(lease, yield* clockOf(group), exists)
  if (Result.isFailure(claimed)) return Exit.fail(claimed.failure)
  yield* group.forgetNumbers
  return Exit.succeed(claimed.success)
})

/** The lease begins anew. */
export const renew = (group: Group, ms: number): Effect.Effect<void, QueryFailed> =>
  Effect.map(clockOf(group), (clock) => group.network.renew(ms, clock))
