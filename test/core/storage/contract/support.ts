import { it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { type Owner, Storage } from "../../../../core/storage/storage.ts"
import { at, batch, match } from "../builders.ts"

/** Declares a test that gets an empty database of its own. */
export type Test = (title: string, body: () => Effect.Effect<void, unknown, Storage>) => void

export const testWith =
  (layer: () => Layer.Layer<Storage, unknown>): Test =>
  (title, body) =>
    it.effect(title, () => Effect.suspend(body).pipe(Effect.provide(layer())))

/** A network `net` that was claimed and began at primary 0. */
export const started = Effect.fnUntraced(function* (id = "net") {
  const storage = yield* Storage
  const owner = yield* storage.claim(id)
  yield* storage.begin(owner, at(0))
  return { storage, owner }
})

/** Matches at primaries `from` to `to`, delivered, in one batch whose end is the checkpoint. */
export const deliveredRange = Effect.fnUntraced(function* (owner: Owner, from: number, to: number, sinks = ["log"]) {
  const storage = yield* Storage
  const matches = Array.from({ length: to - from + 1 }, (_, i) => match(at(from + i), { sinks }))
  const upTo = at(to, 2_147_483_647)
  const { rows } = yield* storage.mint(owner, batch(matches, { upTo }))
  yield* storage.settle(owner, {
    outcomes: rows.map(({ seq }) => ({ seq, state: "delivered", attempts: 1, reason: null })),
    offered: [],
  })
  yield* storage.checkpoint(owner, upTo)
})

/** The first page of owed rows. */
export const all = { afterSeq: 0, limit: 1000 }
/** The first page of a feed. */
export const everything = { kinds: ["match", "retracted"], after: 0, limit: 1000 } as const
