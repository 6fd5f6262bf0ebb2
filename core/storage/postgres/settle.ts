import { Effect } from "effect"
import type { Outcome, Storage } from "../storage.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"
import { storable } from "./text.ts"

const none = (some: ReadonlyArray<unknown>) => some.map(() => null)

/** Writes outcomes and offers. A statement may touch a row but once: of each the first outcome counts, or else its last offer. */
export const settle = Effect.fnUntraced(function* (
  group: Group,
  input: Parameters<Storage["Service"]["settle"]>[1],
  now: number,
): Effect.fn.Return<void, QueryFailed> {
  const { tried = [] } = input
  if (tried.length > 0) {
    yield* group.session.run(sql.tried, [
      group.network.id,
      tried.map(({ seq }) => seq),
      tried.map(({ attempts }) => attempts),
    ])
  }
  const outcomes = new Map<number, Outcome>()
  for (const outcome of input.outcomes) if (!outcomes.has(outcome.seq)) outcomes.set(outcome.seq, outcome)
  const settled = [...outcomes.values()]
  const digests = new Map<number, string | null>(input.offered.map((seq) => [seq, null]))
  for (const { digest, seqs } of input.digests ?? []) for (const seq of seqs) digests.set(seq, digest)
  const offered = [...digests].filter(([seq]) => !outcomes.has(seq))
  if (settled.length + offered.length === 0) return
  const dead = settled.filter(({ state }) => state === "dead").length
  const deaths = (yield* group.take("died", dead)).values()
  yield* group.session.run(sql.settle, [
    group.network.id,
    now,
    [...settled.map(({ seq }) => seq), ...offered.map(([seq]) => seq)],
    [...settled.map(({ state }) => state), ...offered.map(() => "offered")],
    [...settled.map(({ attempts }) => attempts), ...none(offered)],
    [...settled.map(({ reason }) => (reason === null ? null : storable(reason))), ...none(offered)],
    [...settled.map(({ state }) => (state === "dead" ? deaths.next().value! : null)), ...none(offered)],
    [...none(settled), ...offered.map(([, digest]) => digest)],
  ])
})
