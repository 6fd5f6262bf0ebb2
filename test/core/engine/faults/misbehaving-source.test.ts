import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Scheduler } from "effect"
import { describe } from "vitest"
import { endOf, SourceUnavailable, Storage } from "../../../../core/index.ts"
import { InterestVersions } from "../../../../core/pipeline/interest-versions.ts"
import { makeProcessor } from "../../../../core/pipeline/processor.ts"
import { NetworkMetrics } from "../../../../core/pipeline/metrics.ts"
import { PipelineStatus } from "../../../../core/pipeline/status.ts"
import { ProgressTracker } from "../../../../core/pipeline/tracker.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, recorder, sourceThatRuns, transfer, waitForNetwork } from "./support.ts"

describe("a source", () => {
  it.live("that ends by an interruption of its own is started again", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      let runs = 0
      const plugin = sourceThatRuns(feed, (script, given) =>
        Effect.gen(function* () {
          runs++
          yield* given.head(endOf(1))
          return yield* runs === 1 ? Effect.interrupt : script(given)
        }),
      )
      const { values, sink } = recorder("mine")
      const runtime = yield* startRuntime({ plugins: [plugin], resources: definitions([sink]) })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.strictEqual(runs, 2)
      assert.deepStrictEqual(values, [1])
    }),
  )

  it.live("that was away is shown with the reason, and without it once it reads again", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      let runs = 0
      const plugin = sourceThatRuns(feed, (script, given) =>
        ++runs <= 2 ? Effect.fail(new SourceUnavailable({ reason: "the node is away" })) : script(given),
      )
      const runtime = yield* startRuntime({ plugins: [plugin], resources: definitions([recorder("mine").sink]) })
      yield* waitForNetwork(runtime, "the reason is shown", ({ error }) => error === "the node is away")
      yield* waitForCheckpoint(runtime, "test", 1)
      const network = yield* networkNow(runtime, "test")
      assert.strictEqual(network.state, "RUNNING")
      assert.strictEqual(network.error, null)
    }),
  )

  it.live("whose event has a field of another type than it declared loses that event alone", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2)])
      const plugin = sourceThatRuns(feed, (script, given) =>
        script({
          ...given,
          emit: (batch) => {
            const [first, ...rest] = batch.events
            const odd = { ...first!, fields: () => ({ ...first!.fields(), args: { value: "no integer" } }) }
            return given.emit({ ...batch, events: [odd, ...rest] })
          },
        }),
      )
      const { values, sink } = recorder("mine")
      const runtime = yield* startRuntime({ plugins: [plugin], resources: definitions([sink]) })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(values, [2])
      assert.strictEqual((yield* networkNow(runtime, "test")).error, null)
    }),
  )

  it.live("that refused to start is tried again when its network is put unchanged", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.refusal = "the wrong chain"
      feed.append([transfer(1)])
      const { values, sink } = recorder("mine")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })
      yield* waitForNetwork(runtime, "the network is FAILED", ({ state }) => state === "FAILED")
      feed.refusal = null
      yield* resourcesOf(runtime).putNetwork({ id: "test", module: "scripted", config: {} })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.strictEqual((yield* networkNow(runtime, "test")).state, "RUNNING")
      assert.deepStrictEqual(values, [1])
    }),
  )

  it.live("that is interrupted at any step of an emit leaves nothing behind that the next run waits for", () =>
    Effect.gen(function* () {
      const minting = Layer.mock(Storage, {
        database: "sqlite",
        mint: () => Effect.succeed({ rows: [], feedPosition: 0, shown: 0 }),
      })
      const storage = Context.get(yield* Layer.build(minting), Storage)
      const stuck: Array<number> = []
      // A fiber yields after so many steps, which is where an interruption meets it. Each round it emits one step later,
      // so that it is interrupted at another step of the emit.
      const yieldAfter = 64
      for (let steps = 0; steps <= yieldAfter; steps++) {
        const processor = yield* makeProcessor({
          network: "test",
          owner: { network: "test", epoch: 1 },
          storage,
          metrics: new NetworkMetrics("test", Context.empty()),
          status: new PipelineStatus(),
          tracker: new ProgressTracker(),
          checkpoints: { wake: () => {}, stored: () => Effect.void, flush: Effect.void, run: Effect.never },
          interests: new InterestVersions(),
          sinksOf: () => [],
          isEffective: () => true,
          effectiveFrom: () => null,
          onEffective: () => {},
          onWaiting: () => {},
          onPredicateFailure: () => {},
          room: () => 0,
          isDurable: () => false,
          dispatch: () => Effect.void,
          onShown: () => Effect.void,
          minted: () => null,
          onMinted: () => {},
        })
        const running = yield* Effect.forkChild(processor.run, { startImmediately: true })
        const emitting = yield* Effect.gen(function* () {
          for (let step = 0; step < steps; step++) yield* Effect.suspend(() => Effect.void)
          yield* processor.emit({ events: [], upTo: endOf(0), resume: [], interests: 0 })
        }).pipe(
          Effect.provideService(Scheduler.MaxOpsBeforeYield, yieldAfter),
          Effect.forkChild({ startImmediately: true }),
        )
        yield* Fiber.interrupt(emitting)
        if ((yield* Effect.timeoutOption(processor.settled, "1 second"))._tag === "None") stuck.push(steps)
        yield* Fiber.interrupt(running)
      }
      assert.deepStrictEqual(stuck, [])
    }),
  )
})
