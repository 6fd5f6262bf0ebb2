import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Redacted, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { TracingEnvironment } from "../../server/tracing/environment.ts"
import { tracingLayer } from "../../server/tracing/layer.ts"
import { spansOf } from "../support/otlp.ts"
import { respond, startReceiver } from "../support/receiver.ts"

const environment = (origin: string, over: Partial<TracingEnvironment> = {}): TracingEnvironment => ({
  endpoint: new URL(`${origin}/v1/traces`),
  protocol: "http/protobuf",
  compression: "none",
  headers: Redacted.make({}),
  timeoutMs: 600_000,
  delayMs: 1_000,
  batchSize: 512,
  serviceName: "test",
  resource: {},
  share: 1,
  ...over,
})

/** Starts a tracer in a scope of its own, with what it logs. */
const start = Effect.fnUntraced(function* (of: TracingEnvironment) {
  const logged: Array<string> = []
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  const logger = Logger.layer([Logger.make(({ message, logLevel }) => void logged.push(`${logLevel} ${message}`))])
  const context = yield* Layer.buildWithScope(Layer.provideMerge(tracingLayer(of), logger), scope)
  return {
    logged,
    run: <A, E>(effect: Effect.Effect<A, E>) => Effect.provide(effect, context),
    close: Scope.close(scope, Exit.void),
  }
})

/** Lets time pass, in long steps, until something holds; what is on its way in the machine has its turns. */
const passUntil = Effect.fnUntraced(function* (holds: () => boolean, each: Effect.Effect<void> = Effect.void) {
  while (!holds()) {
    yield* each
    yield* TestClock.adjust("20 seconds")
    yield* Effect.promise(async () => {
      for (let turn = 0; turn < 20 && !holds(); turn++) await setImmediate()
    })
  }
})

describe("a collector", () => {
  it.effect("that refuses spans is told of once, and that it takes them again", () =>
    Effect.gen(function* () {
      const collector = yield* startReceiver()
      const { logged, run } = yield* start(environment(collector.origin))
      collector.always(respond(401))
      const span = run(Effect.withSpan(Effect.void, "one"))
      for (const count of [1, 2]) yield* passUntil(() => collector.requests.length === count, span)
      collector.always(respond(200))
      yield* passUntil(() => logged.length === 2, span)
      const where = `${collector.origin}/v1/traces`
      assert.deepStrictEqual(logged, [
        `Warn traces cannot be sent to ${where}: it answers HTTP 401; those of the meantime are lost`,
        `Info traces are sent to ${where} again`,
      ])
    }),
  )

  it.effect("that does not answer holds up nobody, at the end for less than two seconds", () =>
    Effect.gen(function* () {
      const collector = yield* startReceiver()
      collector.always({ kind: "hang" })
      const { logged, run, close } = yield* start(environment(collector.origin, { batchSize: 1 }))
      for (let i = 0; i < 50; i++) yield* run(Effect.withSpan(Effect.void, "lost"))
      yield* passUntil(() => logged.length > 0)
      assert.isAtMost(collector.requests.length, 4)
      assert.deepStrictEqual(logged, [
        `Warn traces cannot be sent to ${collector.origin}/v1/traces: it does not take them as fast as they come; those of the meantime are lost`,
      ])
      const closing = yield* Effect.forkChild(close)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(closing)
    }),
  )

  it.effect("gets a share of the traces, each whole, and what is left at the end", () =>
    Effect.gen(function* () {
      const collector = yield* startReceiver()
      const { run, close } = yield* start(environment(collector.origin, { share: 0.5 }))
      const trace = Effect.void.pipe(Effect.withSpan("child"), Effect.withSpan("root"))
      yield* run(Effect.forEach(Array.from({ length: 200 }), () => trace, { discard: true }))
      yield* close
      const spans = spansOf(collector.requests)
      const roots = spans.filter(({ name }) => name === "root")
      assert.isAbove(roots.length, 50)
      assert.isBelow(roots.length, 150)
      assert.sameMembers(
        spans.filter(({ name }) => name === "child").map(({ parentSpanId }) => parentSpanId),
        roots.map(({ spanId }) => spanId),
      )
    }),
  )
})
