import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, monitor } from "../builders.ts"
import { claim, started, type Test } from "./support.ts"

/** The part of the contract about progress. */
export const progress = (test: Test): void => {
  test("the start is stored once as minted and checkpoint", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const owner = yield* claim(storage)
      assert.deepInclude(yield* storage.pipeline("net"), { minted: null, checkpoint: null, start: null })
      yield* TestClock.setTime(5000)
      yield* storage.begin(owner, at(7, 3))
      yield* storage.begin(owner, at(9))
      assert.deepStrictEqual(yield* storage.pipeline("net"), {
        network: "net",
        minted: at(7, 3),
        checkpoint: at(7, 3),
        checkpointAt: 5000,
        feedPosition: 0,
        start: at(7, 3),
        paused: false,
      })
    }))

  test("a network rests, or goes on, also under its next owner", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const paused = Effect.map(storage.pipeline("net"), (pipeline) => pipeline!.paused)
      yield* storage.pause(owner, true)
      assert.isTrue(yield* paused)
      const next = yield* claim(storage)
      assert.isTrue(yield* paused)
      yield* storage.pause(next, false)
      assert.isFalse(yield* paused)
    }))

  test("the checkpoint moves forward only and at most to minted", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const checkpoint = Effect.map(storage.pipeline("net"), (pipeline) => pipeline!.checkpoint)
      yield* storage.mint(owner, batch([], { upTo: at(10), checkpoint: at(4) }))
      assert.deepStrictEqual(yield* checkpoint, at(4))
      yield* storage.checkpoint(owner, at(3, 99))
      assert.deepStrictEqual(yield* checkpoint, at(4))
      yield* storage.checkpoint(owner, at(4, 1))
      assert.deepStrictEqual(yield* checkpoint, at(4, 1))
      yield* storage.checkpoint(owner, at(11))
      assert.deepStrictEqual(yield* checkpoint, at(10))
      yield* storage.mint(owner, batch([], { upTo: at(5), checkpoint: at(5) }))
      assert.deepInclude(yield* storage.pipeline("net"), { minted: at(10), checkpoint: at(10) })
    }))

  test("anchors are replaced by a mint and read newest first", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const anchors = [1, 2, 3].map((primary) => ({ primary, hash: `a${primary}` }))
      yield* storage.mint(owner, batch([], { upTo: at(3), anchors }))
      yield* storage.mint(owner, batch([], { upTo: at(3), anchors: [{ primary: 2, hash: "b2" }] }))
      assert.deepStrictEqual(yield* storage.anchors("net", 2, 10), [
        { primary: 2, hash: "b2" },
        { primary: 1, hash: "a1" },
      ])
      assert.deepStrictEqual(yield* storage.anchors("net", 9, 1), [{ primary: 3, hash: "a3" }])
    }))

  test("a monitor takes effect only in the revision that saw the batch", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.change({ putMonitors: [monitor("old", {}, { matchRevision: "r2" }), monitor("new")] })
      const effective = ["old", "new"].map((id) => ({ monitor: id, matchRevision: "r1", from: at(4) }))
      yield* storage.mint(owner, batch([], { upTo: at(5), effective }))
      const { monitors } = yield* storage.resources
      assert.deepStrictEqual(
        monitors.map(({ definition, effectiveFrom }) => [definition.id, effectiveFrom]),
        [
          ["new", at(4)],
          ["old", null],
        ],
      )
    }))
}
