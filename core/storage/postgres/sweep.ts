import { Effect } from "effect"
import { type Swept, type SweptTuple, Sweeps } from "../sweep.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import type { Value } from "./native.ts"

/** Looks for rows to remove, from where the last look ended. */
export const makeSweep = (
  /** Takes the network, the bound, the place, the limit and what else it needs, and answers `SweptTuple`s. */
  statement: string,
) => {
  const sweeps = new Sweeps()
  return Effect.fnUntraced(function* (
    { session, network }: Group,
    bound: number,
    limit: number,
    now: number,
    ...rest: ReadonlyArray<Value>
  ): Effect.fn.Return<Swept, QueryFailed> {
    const values = [network.id, bound, ...sweeps.place(network.id), limit, ...rest]
    return sweeps.take(network.id, yield* session.all<SweptTuple>(statement, values), limit, now)
  })
}
