import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Scope } from "effect"
import { DeadLetters, type HostSink, Permanent, StorageError } from "../../../core/index.ts"
import { resourcesOf, type Runtime, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, recorder, startOver, transfer } from "./faults/support.ts"
import { Sent, startProcess } from "./owners/support.ts"

const sinkNow = (runtime: Runtime, id: string) =>
  Effect.map(Effect.orDie(resourcesOf(runtime).sinks), (sinks) => sinks.find((sink) => sink.id === id)!)

const waitForSink = (runtime: Runtime, id: string, state: string) =>
  waitUntil(
    `the sink ${id} is ${state}`,
    Effect.map(sinkNow(runtime, id), (sink) => sink?.state === state),
  )

const lettersOf = (runtime: Runtime) =>
  Effect.map(Context.get(runtime, DeadLetters).list({ network: "test", first: 10, after: null }), ({ items }) =>
    items.map(({ node }) => [node.attempts, node.reason]),
  )

describe("a paused sink", () => {
  it.live("says why, whatever is put, until it is resumed; also over a restart", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const { sink } = recorder("a")
      const options = { path, plugins: [scriptedSource(new ScriptedFeed())], resources: definitions([sink]) }
      const scope = yield* Scope.make()
      const first = yield* startRuntime(options).pipe(Scope.provide(scope))
      const { pauseSink, putSink } = resourcesOf(first)
      const paused = yield* pauseSink("a")
      assert.deepInclude(paused, { state: "PAUSED", error: "by an operator; resumeSink lets it go on" })
      const put = yield* putSink({ id: "a", module: "host:a", config: {}, concurrency: 2 })
      assert.deepInclude(put, { state: "PAUSED", error: "by an operator; resumeSink lets it go on", concurrency: 2 })
      yield* Scope.close(scope, Exit.void)

      const runtime = yield* startRuntime(options)
      assert.deepInclude(yield* sinkNow(runtime, "a"), {
        state: "PAUSED",
        error: "by an operator; resumeSink lets it go on",
      })
      const { resumeSink, deleteSink, putMonitor } = resourcesOf(runtime)
      for (let i = 0; i < 2; i++) assert.deepInclude(yield* resumeSink("a"), { state: "RUNNING", error: null })
      yield* resourcesOf(runtime).pauseSink("a")
      yield* putMonitor({ ...definitions([sink]).monitors[0]!, sinks: [] })
      yield* deleteSink("a")
      const again = yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {} })
      assert.strictEqual(again.state, "RUNNING")
    }),
  )

  it.live("that does not exist is NotFound", () =>
    Effect.gen(function* () {
      const runtime = yield* startRuntime({})
      const { pauseSink, resumeSink } = resourcesOf(runtime)
      for (const change of [pauseSink, resumeSink]) {
        assert.strictEqual((yield* Effect.flip(change("nobody")))._tag, "NotFound")
      }
    }),
  )

  it.live("rests in every process that shares the database", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const sent = new Sent()
      const start = (name: string) =>
        startProcess(path, {
          plugins: [scriptedSource(new ScriptedFeed())],
          resources: definitions([sent.sink(name, { id: "a" })]),
        })
      const owner = yield* start("owner")
      const other = yield* start("other")
      // No process needs to own a network for it, and the later word counts in both.
      yield* other.resources.pauseSink("a")
      yield* waitForSink(owner.runtime, "a", "PAUSED")
      yield* owner.resources.resumeSink("a")
      yield* waitForSink(other.runtime, "a", "RUNNING")
      yield* Effect.all([owner.resources.pauseSink("a"), other.resources.pauseSink("a")], { concurrency: 2 })
      yield* Effect.all([owner, other].map(({ runtime }) => waitForSink(runtime, "a", "PAUSED")))
    }),
  )

  it.live("lets its matches die, and what comes after its resumption arrives", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const { sink, values } = recorder("a")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })
      yield* resourcesOf(runtime).pauseSink("a")
      feed.append([transfer(1), transfer(2)])
      yield* waitForCheckpoint(runtime, "test", 1)
      yield* resourcesOf(runtime).resumeSink("a")
      feed.append([transfer(3)])
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.deepStrictEqual(values, [3])
      const dead = [0, "permanent: sink paused: by an operator"]
      assert.deepStrictEqual(yield* lettersOf(runtime), [dead, dead])
    }),
  )
})

describe("a sink whose receiver says that it is gone", () => {
  /** Answers once that it is gone, and takes what comes then. */
  const goneOnce = () => {
    const { sink, values } = recorder("a")
    let answered = false
    const deliver: HostSink["deliver"] = (event, delivery) => {
      if (answered) return sink.deliver(event)
      answered = true
      return new Permanent({ reason: `410 to ${delivery.attempt}`, gone: true })
    }
    return { values, sink: { ...sink, deliver } }
  }

  it.live("is paused for good, and is sent nothing more", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2), transfer(3)])
      const { sink, values } = goneOnce()
      const options = { path, plugins: [scriptedSource(feed)], resources: definitions([sink]) }
      const scope = yield* Scope.make()
      const first = yield* startRuntime(options).pipe(Scope.provide(scope))
      yield* waitForCheckpoint(first, "test", 1)
      yield* waitForSink(first, "a", "PAUSED")
      yield* Scope.close(scope, Exit.void)

      const runtime = yield* startRuntime(options)
      assert.deepInclude(yield* sinkNow(runtime, "a"), { state: "PAUSED", error: "410 to 1; resumeSink lets it go on" })
      assert.deepStrictEqual(values, [])
      const [first410, ...others] = yield* lettersOf(runtime)
      assert.deepStrictEqual(first410, [1, "permanent: 410 to 1"])
      assert.deepStrictEqual(
        others,
        [0, 0].map((attempts) => [attempts, "permanent: sink paused: 410 to 1"]),
      )
      yield* resourcesOf(runtime).resumeSink("a")
      feed.append([transfer(4)])
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.deepStrictEqual(values, [4])
    }),
  )

  it.live("with a durable buffer is sent all of it when it is resumed, first what it refused", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2)])
      const { sink, values } = goneOnce()
      const options = {
        path,
        plugins: [scriptedSource(feed)],
        resources: definitions([{ ...sink, buffer: "DURABLE" as const }]),
      }
      const scope = yield* Scope.make()
      const first = yield* startRuntime(options).pipe(Scope.provide(scope))
      yield* waitForSink(first, "a", "PAUSED")
      yield* waitForCheckpoint(first, "test", 1)
      yield* Scope.close(scope, Exit.void)

      const runtime = yield* startRuntime(options)
      assert.deepStrictEqual(values, [])
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
      yield* resourcesOf(runtime).resumeSink("a")
      yield* waitUntil("all of it was sent", () => values.length === 2)
      assert.deepStrictEqual(values, [1, 2])
    }),
  )

  it.live("rests at once, is stored paused when the database takes it, and not when it was resumed before", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const a = goneOnce().sink
      const b = { ...goneOnce().sink, id: "b" }
      const tried = new Set<string>()
      let isAway = true
      const { runtime, storage } = yield* startOver(
        ({ change }) => ({
          change: (changes) => {
            const [pause] = changes.pauseSinks ?? []
            if (!isAway || pause === undefined) return change(changes)
            tried.add(pause.id)
            return new StorageError({ operation: "change", reason: "the disk is full", retryable: true })
          },
        }),
        {
          plugins: [scriptedSource(feed)],
          resources: { ...definitions([a, b]), monitors: [allTransfers(["a", "b"])] },
        },
      )
      const pausedOf = (id: string) =>
        Effect.map(
          Effect.orDie(storage.resources),
          ({ sinks }) => sinks.find(({ definition }) => definition.id === id)!.paused,
        )
      yield* waitUntil("both pauses were tried", () => tried.size === 2)
      for (const id of ["a", "b"]) {
        assert.strictEqual((yield* sinkNow(runtime, id)).state, "PAUSED")
        assert.strictEqual(yield* pausedOf(id), null)
      }
      // What another process stores meanwhile says nothing of it.
      const [stored] = (yield* storage.resources).sinks
      yield* storage.change({ putSinks: [{ ...stored!, definition: { ...stored!.definition, id: "other" } }] })
      yield* waitForSink(runtime, "other", "RUNNING")
      assert.strictEqual((yield* sinkNow(runtime, "a")).state, "PAUSED")

      isAway = false
      yield* resourcesOf(runtime).resumeSink("a")
      // The pause of `a` is tried again before that of `b`.
      yield* waitUntil(
        "that of b is stored",
        Effect.map(pausedOf("b"), (paused) => paused === "410 to 1"),
      )
      assert.strictEqual(yield* pausedOf("a"), null)
      assert.strictEqual((yield* sinkNow(runtime, "a")).state, "RUNNING")
    }),
  )
})
