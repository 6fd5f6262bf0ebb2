import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, References, Tracer } from "effect"
import { DeadLetters, type HostSink, Permanent, presentTraceparent, Transient } from "../../../core/index.ts"
import { hasFailed, parentOf, RecordingTracer } from "../../support/recording-tracer.ts"
import { resourcesOf, startRuntime } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../support/scripted-source.ts"
import { allTransfers, definitions, fast, sourceThatRuns, transfer } from "./faults/support.ts"
import { receiver, waitFor, waitForWords } from "./policies/support.ts"
import { lettersOf, waitForEnd } from "./taking-back/support.ts"

/** A source that reads each batch in a span of its own. */
const tracedSource = (feed: ScriptedFeed) =>
  sourceThatRuns(feed, (script, given) =>
    script({ ...given, emit: (batch) => Effect.withSpan(given.emit(batch), "read") }),
  )

/** The names of a span and of those above it. */
const pathOf = (span: Tracer.AnySpan): ReadonlyArray<string> => {
  if (span._tag !== "Span") return []
  const parent = parentOf(span)
  return [span.name, ...(parent === null ? [] : pathOf(parent))]
}

const traced = (recording: RecordingTracer) => Effect.provideService(Tracer.Tracer, recording.tracer)

describe("a trace", () => {
  it.live(
    "leads from a source's read to each attempt, whatever started the network, and is another one for each read",
    () => {
      const recording = new RecordingTracer()
      return Effect.gen(function* () {
        const feed = new ScriptedFeed()
        feed.append([transfer(1), transfer(2)])
        const heard: Array<string | null> = []
        const a = receiver("a", {
          retry: fast,
          before: () =>
            Effect.flatMap(presentTraceparent, (traceparent) => {
              heard.push(traceparent)
              return heard.length === 1 ? Effect.fail(new Transient({ reason: "once" })) : Effect.void
            }),
        })
        const runtime = yield* startRuntime({ plugins: [tracedSource(feed)], resources: { sinks: [a.sink] } })
        yield* resourcesOf(runtime).putNetwork({ id: "test", module: "scripted", config: {} })
        yield* resourcesOf(runtime).putMonitor(allTransfers(["a"]))
        yield* waitForWords(a, ["+1", "+2"])
        feed.append([transfer(3)])
        yield* waitForEnd(runtime, 2)

        const attempts = recording.named("deliver")
        for (const attempt of attempts) assert.deepStrictEqual(pathOf(attempt), ["deliver", "mint", "match", "read"])
        assert.deepStrictEqual(
          attempts.map((attempt) => [hasFailed(attempt), attempt.attributes.get("blockwatcher.delivery.attempt")]),
          [
            [true, 1],
            [false, 2],
            [false, 1],
            [false, 1],
          ],
        )
        assert.strictEqual(attempts[0]!.attributes.get("error.type"), "Transient")
        assert.deepStrictEqual(
          heard,
          attempts.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
        )
        const traces = attempts.map(({ traceId }) => traceId)
        assert.strictEqual(new Set(traces.slice(0, 3)).size, 1)
        assert.notStrictEqual(traces[3], traces[0])
        assert.isEmpty(recording.named("Resources.putMonitor").filter(({ traceId }) => traces.includes(traceId)))
        for (const [name, key] of [
          ["mint", "blockwatcher.matches"],
          ["match", "blockwatcher.events"],
        ] as const) {
          assert.deepStrictEqual(
            recording.named(name).map(({ attributes }) => attributes.get(key)),
            [2, 1],
          )
        }
      }).pipe(traced(recording))
    },
  )

  it.live(
    "of what is taken back leads to the retractions, and one of a digest is linked to those of its matches",
    () => {
      const recording = new RecordingTracer()
      return Effect.gen(function* () {
        const feed = new ScriptedFeed()
        feed.append([transfer(1)], [transfer(2)])
        const a = receiver("a", { aggregate: { windowMs: 86_400_000, maxBatch: 2 } })
        const runtime = yield* startRuntime({
          plugins: [tracedSource(feed)],
          resources: definitions([a.sink], { range: 1 }),
        })
        yield* waitForWords(a, ["[1 2]"])
        const [first, second] = recording.named("mint")
        const [digest] = recording.named("deliver")
        assert.strictEqual(parentOf(digest!), first ?? null)
        assert.deepStrictEqual(
          digest!.links.map(({ span }) => span),
          [second!],
        )
        feed.fork(1, "x", [])
        yield* waitForWords(a, ["[1 2]", "-2"])
        yield* waitForEnd(runtime, 2)
        const [, retraction] = recording.named("deliver")
        assert.deepStrictEqual(pathOf(retraction!), ["deliver", "take back"])
        assert.strictEqual(retraction!.attributes.get("blockwatcher.delivery.type"), "retracted")
      }).pipe(traced(recording))
    },
  )

  it.live("of a replay begins with whoever asked for it", () => {
    const recording = new RecordingTracer()
    return Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const a = receiver("a", {
        before: () => (a.attempts.length === 1 ? Effect.fail(new Permanent({ reason: "no" })) : Effect.void),
      })
      const runtime = yield* startRuntime({ plugins: [tracedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 1)
      const [letter] = yield* lettersOf(runtime)
      yield* Effect.withSpan(Context.get(runtime, DeadLetters).replay(letter!.id), "request")
      const [, replay] = recording.named("deliver")
      assert.deepStrictEqual(pathOf(replay!), ["deliver", "DeadLetters.replay", "request"])
    }).pipe(traced(recording))
  })

  it.live("is not begun while nobody reads it", () => {
    const recording = new RecordingTracer()
    const heard: Array<string | null> = []
    const sink: HostSink = {
      id: "a",
      deliver: () => Effect.map(presentTraceparent, (traceparent) => heard.push(traceparent)),
    }
    const deliverOne = Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })
      const before = heard.length
      yield* waitFor("it is delivered", () => heard.length > before)
    }).pipe(Effect.scoped)
    return Effect.gen(function* () {
      yield* Effect.withSpan(deliverOne, "of Effect's own tracer")
      yield* deliverOne.pipe(traced(recording), Effect.provideService(References.TracerEnabled, false))
      assert.deepStrictEqual(heard, [null, null])
      assert.isEmpty(recording.spans)
    })
  })
})
