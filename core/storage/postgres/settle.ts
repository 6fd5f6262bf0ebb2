import { Effect } from "effect"
import type { Outcome } from "../storage.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"
import { storable } from "./text.ts"

/** Writes outcomes and offers. */
export const settle = Effect.fnUntraced(function* (
  group: Group,
  input: { readonly outcomes: ReadonlyArray<Outcome>; readonly offered: ReadonlyArray<number> },
  now: number,
): Effect.fn.Return<void, QueryFailed> {
  const outcomes = new Map<number, Outcome>()
  for (const outcome of input.outcomes) if (!outcomes.has(outcome.seq)) outcomes.set(outcome.seq, outcome)
  const settled = [...outcomes.values()]
  const offered = [...new Set(input.offered)].filter((seq) => !outcomes.has(seq))
  if (settled.length + offered.length === 0) return
  const dead = settled.filter(({ state }) => state === "dead").length
  const deaths = (yield* group.take("died", dead)).values()
  const nothing = offered.map(() => null)
  yield* group.session.run(sql.settle, [
    group.network.id,
    now,
    [...settled.map(({ seq }) => seq), ...offered],
    [...settled.map(({ state }) => state), ...offered.map(() => "offered")],
    [...settled.map(({ attempts }) => attempts), ...nothing],
    [...settled.map(({ reason }) => (reason === null ? null : storable(reason))), ...nothing],
    [...settled.map(({ state }) => (state === "dead" ? deaths.next().value! : null)), ...nothing],
  ])
})
