import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { describe } from "vitest"
import { Permanent, StorageError } from "../../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import {
  allTransfers,
  definitions,
  endsInTime,
  fast,
  Gate,
  recorder,
  reasonsOfDeath,
  startOver,
  transfer,
  waitForInFlight,
  waitForNetwork,
} from "./support.ts"

/**
 * Two networks, the deletion of the first under way: it drains for as long as its one delivery waits at `delivering`.
 * Their monitor went over to the second.
 */
const deletionUnderWay = Effect.fnUntraced(function* () {
  const feed = new ScriptedFeed()
  feed.append([transfer(1)])
  const delivering = new Gate("closed")
  const runtime = yield* startRuntime({
    plugins: [scriptedSource(feed)],
    resources: definitions([{ id: "mine", deliver: () => delivering.pass }]),
  })
  yield* waitForInFlight(runtime)
  const { putNetwork, putMonitor, deleteNetwork } = resourcesOf(runtime)
  yield* putNetwork({ id: "other", module: "scripted", config: {} })
  yield* putMonitor(allTransfers(["mine"], { network: "other" }))
  const deleting = yield* Effect.forkChild(deleteNetwork("test", { discard: true }))
  yield* waitForNetwork(runtime, "the network drains", ({ state }) => state === "DRAINING")
  return { runtime, feed, delivering, deleting }
})

describe("a change under way", () => {
  it.live("that deletes a network keeps no change of another network waiting", () =>
    Effect.gen(function* () {
      const { runtime, delivering, deleting } = yield* deletionUnderWay()
      const { networks, putMonitor } = resourcesOf(runtime)
      yield* putMonitor(allTransfers([], { id: "second", network: "other" }))
      assert.strictEqual((yield* networkNow(runtime, "test")).state, "DRAINING")
      assert.isUndefined(deleting.pollUnsafe())
      yield* delivering.open
      yield* Fiber.join(deleting)
      assert.deepStrictEqual(
        (yield* networks).map(({ id }) => id),
        ["other"],
      )
    }),
  )

  it.live("that deletes a network is carried out also when its caller goes away in the drain", () =>
    Effect.gen(function* () {
      const { runtime, delivering, deleting } = yield* deletionUnderWay()
      deleting.interruptUnsafe()
      yield* delivering.open
      yield* Fiber.await(deleting)
      const { networks, putNetwork, putMonitor } = resourcesOf(runtime)
      assert.deepStrictEqual(
        (yield* networks).map(({ id }) => id),
        ["other"],
      )
      // Its id is free again, and nothing of the old network is left to run.
      yield* putNetwork({ id: "test", module: "scripted", config: {} })
      yield* putMonitor(allTransfers(["mine"], { id: "again" }))
      yield* waitForCheckpoint(runtime, "test", 1)
    }),
  )

  it.live("that puts a monitor is taken up also when its caller goes away once it is stored", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const stored = new Gate("open")
      const { runtime, storage } = yield* startOver(
        ({ change }) => ({ change: (changes) => Effect.tap(change(changes), () => stored.pass) }),
        { plugins: [scriptedSource(feed)], resources: definitions([recorder("mine").sink]) },
      )
      const { putMonitor, monitors } = resourcesOf(runtime)
      yield* stored.close
      const putting = yield* Effect.forkChild(putMonitor(allTransfers(["mine"], { id: "second" })))
      yield* stored.reached
      putting.interruptUnsafe()
      yield* stored.open
      yield* Fiber.await(putting)
      const shown = (yield* monitors).map(({ id }) => id)
      assert.deepStrictEqual(shown, ["all", "second"])
      assert.deepStrictEqual(
        (yield* storage.resources).monitors.map(({ definition }) => definition.id),
        shown,
      )
    }),
  )

  it.live("that deletes a monitor without discard takes away nothing that is minted meanwhile", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const storing = new Gate("open")
      const delivering = new Gate("closed")
      const { runtime } = yield* startOver(
        ({ change }) => ({ change: (changes) => Effect.andThen(storing.pass, change(changes)) }),
        {
          plugins: [scriptedSource(feed)],
          resources: definitions([
            {
              id: "mine",
              retry: fast,
              deliver: () => Effect.andThen(delivering.pass, new Permanent({ reason: "no" })),
            },
          ]),
        },
      )
      yield* storing.close
      const deleting = yield* Effect.forkChild(resourcesOf(runtime).deleteMonitor("all"))
      yield* storing.reached
      feed.append([transfer(1)])
      yield* delivering.reached
      yield* storing.open
      yield* Fiber.join(deleting)
      yield* delivering.open
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(yield* reasonsOfDeath(runtime), ["permanent: no"])
    }),
  )

  it.live("that deletes a sink leaves no row for it behind, also of what was matched before", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const minting = new Gate("open")
      const old = recorder("old")
      const present = recorder("new")
      const { runtime, storage } = yield* startOver(
        ({ mint }) => ({ mint: (owner, input) => Effect.andThen(minting.pass, mint(owner, input)) }),
        { plugins: [scriptedSource(feed)], resources: definitions([old.sink, present.sink]) },
      )
      const { putMonitor, deleteSink } = resourcesOf(runtime)
      yield* minting.close
      feed.append([transfer(1)])
      yield* minting.reached
      yield* putMonitor(allTransfers(["new"]))
      yield* deleteSink("old")
      yield* minting.open
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(old.values, [])
      assert.deepStrictEqual(present.values, [1])
      assert.deepStrictEqual(yield* storage.owedSinks("test"), [])
    }),
  )

  it.live("that discards a monitor is carried out also when the pipeline breaks while it makes way", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const settling = new Gate("closed")
      const { runtime } = yield* startOver(
        ({ settle }) => ({
          settle: (owner, input) =>
            input.outcomes.length === 0
              ? settle(owner, input)
              : Effect.andThen(
                  settling.pass,
                  Effect.fail(new StorageError({ operation: "settle", reason: "corrupt", retryable: false })),
                ),
        }),
        { plugins: [scriptedSource(feed)], resources: definitions([recorder("mine").sink]) },
      )
      yield* settling.reached
      const deleting = yield* Effect.forkChild(resourcesOf(runtime).deleteMonitor("all", { discard: true }))
      yield* Effect.yieldNow
      yield* settling.open
      assert.isTrue(yield* endsInTime(deleting))
      assert.deepStrictEqual(yield* resourcesOf(runtime).monitors, [])
    }),
  )
})
