import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { describe } from "vitest"
import { resourcesOf, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, Gate, recorder, startOver, transfer } from "./support.ts"

/** A monitor was edited, and is switched off while its first batch since is being minted. */
const switchedOffInItsFirstMint = Effect.gen(function* () {
  const feed = new ScriptedFeed()
  const minting = new Gate("open")
  const { values, sink } = recorder("mine")
  const { runtime, storage } = yield* startOver(
    ({ mint }) => ({ mint: (owner, input) => Effect.andThen(minting.pass, mint(owner, input)) }),
    { plugins: [scriptedSource(feed)], resources: definitions([sink], { range: 1 }) },
  )
  const { putMonitor, monitors } = resourcesOf(runtime)
  const edited = (enabled: boolean) => allTransfers(["mine"], { predicate: "args.value > 0", enabled })
  feed.append([transfer(1)])
  yield* waitForCheckpoint(runtime, "test", 1)
  yield* putMonitor(edited(true))
  yield* minting.close
  feed.append([transfer(2)])
  yield* minting.reached
  yield* putMonitor(edited(false))
  return { feed, minting, runtime, storage, values, monitors, edited, putMonitor }
})

describe("effectiveFrom", () => {
  it.live("of a monitor that was edited and edited back lies behind what the revision in between matched", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const minting = new Gate("open")
      const { values, sink } = recorder("mine")
      const { runtime } = yield* startOver(
        ({ mint }) => ({ mint: (owner, input) => Effect.andThen(minting.pass, mint(owner, input)) }),
        { plugins: [scriptedSource(feed)], resources: definitions([sink], { range: 1 }) },
      )
      const { putMonitor, monitors } = resourcesOf(runtime)
      const emitted = (batches: number) => waitUntil(`${batches} batches are emitted`, () => feed.emitted === batches)
      feed.append([transfer(1)])
      yield* waitForCheckpoint(runtime, "test", 1)
      yield* minting.close
      feed.append([transfer(2)])
      yield* minting.reached
      // Blocks 3 and 4 wait behind it: one for the first revision, one for the edited one, which matches nothing.
      feed.append([transfer(3)])
      yield* emitted(3)
      yield* putMonitor(allTransfers(["mine"], { predicate: "args.value > 100" }))
      feed.append([transfer(4)])
      yield* emitted(4)
      yield* putMonitor(allTransfers(["mine"]))
      feed.append([transfer(5)])
      yield* minting.open
      yield* waitForCheckpoint(runtime, "test", 5)
      assert.deepStrictEqual(values, [1, 2, 3, 5])
      assert.strictEqual((yield* monitors)[0]!.effectiveFrom?.primary, 4)
    }),
  )

  it.live("that is recorded while an edit of the sinks is being stored is kept", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const storing = new Gate("open")
      const { runtime, storage } = yield* startOver(
        ({ change }) => ({ change: (changes) => Effect.andThen(storing.pass, change(changes)) }),
        { plugins: [scriptedSource(feed)], resources: definitions([recorder("mine").sink], { range: 1 }) },
      )
      const { putMonitor, monitors } = resourcesOf(runtime)
      yield* storing.close
      const putting = yield* Effect.forkChild(putMonitor(allTransfers([])))
      yield* storing.reached
      feed.append([transfer(1)])
      yield* waitForCheckpoint(runtime, "test", 1)
      const recorded = (yield* monitors)[0]!.effectiveFrom
      assert.strictEqual(recorded?.primary, 0)
      yield* storing.open
      yield* Fiber.join(putting)
      feed.append([transfer(2)])
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.deepStrictEqual((yield* monitors)[0]!.effectiveFrom, recorded)
      assert.deepStrictEqual((yield* storage.resources).monitors[0]!.effectiveFrom, recorded)
    }),
  )

  it.live("of a monitor that is switched off and on while its first batch is minted is that of its next one", () =>
    Effect.gen(function* () {
      const { feed, minting, runtime, storage, monitors, edited, putMonitor } = yield* switchedOffInItsFirstMint
      const putting = yield* Effect.forkChild(putMonitor(edited(true)), { startImmediately: true })
      yield* minting.open
      yield* Fiber.join(putting)
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.isNull((yield* storage.resources).monitors[0]!.effectiveFrom)
      assert.isNull((yield* monitors)[0]!.effectiveFrom)
      feed.append([transfer(3)])
      yield* waitForCheckpoint(runtime, "test", 3)
      assert.strictEqual((yield* storage.resources).monitors[0]!.effectiveFrom?.primary, 2)
    }),
  )

  it.live("of a monitor that is switched off while its first batch is minted is not kept when it is switched on", () =>
    Effect.gen(function* () {
      const { feed, minting, runtime, storage, values, monitors, edited, putMonitor } = yield* switchedOffInItsFirstMint
      yield* minting.open
      feed.append([transfer(3)])
      yield* waitForCheckpoint(runtime, "test", 3)
      yield* putMonitor(edited(true))
      // What a runtime that starts now would take for its own.
      assert.isNull((yield* storage.resources).monitors[0]!.effectiveFrom)
      feed.append([transfer(4)])
      yield* waitForCheckpoint(runtime, "test", 4)
      assert.strictEqual((yield* monitors)[0]!.effectiveFrom?.primary, 3)
      assert.deepStrictEqual(values, [1, 2, 4])
    }),
  )
})
