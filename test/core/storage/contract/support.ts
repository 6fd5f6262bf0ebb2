import { it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { Cursor } from "../../../../core/model/cursor.ts"
import { type Owner, Storage } from "../../../../core/storage/storage.ts"
import { at, batch, lease, match } from "../builders.ts"

/** Declares a test that gets an empty database of its own. */
export type Test = (title: string, body: () => Effect.Effect<void, unknown, Storage>) => void

export const testWith =
  (layer: () => Layer.Layer<Storage, unknown>): Test =>
  (title, body) =>
    it.effect(title, () => Effect.suspend(body).pipe(Effect.provide(layer())))

/** Takes a network over as the holder `this`. */
export const claim = (storage: Storage["Service"], network = "net") => storage.claim(network, lease())

/** A network `net` that was claimed and began at primary 0. */
export const started = Effect.fnUntraced(function* (id = "net") {
  const storage = yield* Storage
  const owner = yield* claim(storage, id)
  yield* storage.begin(owner, at(0))
  return { storage, owner }
})

/** Settles rows as delivered, or as dead when there is a reason. */
export const settleAll = Effect.fnUntraced(function* (
  owner: Owner,
  rows: ReadonlyArray<{ readonly seq: number }>,
  reason: string | null = null,
) {
  const storage = yield* Storage
  const state = reason === null ? "delivered" : "dead"
  yield* storage.settle(owner, {
    outcomes: rows.map(({ seq }) => ({ seq, state, attempts: 1, reason })),
    offered: [],
  })
})

/** Matches at primaries `from` to `to`, delivered, in one batch whose end is the checkpoint. */
export const deliveredRange = Effect.fnUntraced(function* (owner: Owner, from: number, to: number, sinks = ["log"]) {
  const storage = yield* Storage
  const matches = Array.from({ length: to - from + 1 }, (_, i) => match(at(from + i), { sinks }))
  const upTo = at(to, 2_147_483_647)
  const { rows } = yield* storage.mint(owner, batch(matches, { upTo }))
  yield* settleAll(owner, rows)
  yield* storage.checkpoint(owner, upTo)
})

/** Repeats the step that ends matches until none is left; answers what each did. */
export const retractAll = Effect.fnUntraced(function* (owner: Owner, limit = 1000) {
  const storage = yield* Storage
  const steps = [yield* storage.retract(owner, limit)]
  while (!steps.at(-1)!.done) steps.push(yield* storage.retract(owner, limit))
  return steps
})

/** Takes back everything behind `from`, with all of its steps. */
export const takeBack = Effect.fnUntraced(function* (owner: Owner, from: Cursor, journalDepth = 1000) {
  const storage = yield* Storage
  yield* storage.invalidate(owner, { from, cause: "reorg" })
  yield* retractAll(owner)
  return yield* storage.rewind(owner, journalDepth)
})

/** The first page of owed rows. */
export const all = { afterSeq: 0, limit: 1000 }
/** The first page of a feed. */
export const everything = { kinds: ["match", "retracted"], after: 0, limit: 1000 } as const
