import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import {
  type ConformanceCheck,
  ConformanceFailure,
  sinkConformance,
  sourceConformance,
} from "../../../core/plugin/conformance.ts"
import { nothingOutside } from "../../../core/plugin/conformance-check.ts"
import { Egress } from "../../../core/plugin/egress.ts"
import { Permanent, PluginRefused, SourceUnavailable, Transient } from "../../../core/plugin/error.ts"
import { type Sink, SinkPlugin } from "../../../core/plugin/sink.ts"
import { type Source, type SourceBatch, type SourceEvent, SourcePlugin } from "../../../core/plugin/source.ts"
import { endOf, MAX_SECONDARY } from "../../../core/model/cursor.ts"

/** The names of the checks that fail, and why. */
const failing = (checks: ReadonlyArray<ConformanceCheck>) =>
  Effect.forEach(checks, ({ name, effect }) => Effect.map(Effect.result(effect), (result) => ({ name, result })), {
    concurrency: "unbounded",
  }).pipe(
    Effect.map((results) =>
      results.flatMap(({ name, result }) => {
        if (Result.isSuccess(result)) return []
        assert.instanceOf(result.failure, ConformanceFailure)
        return [`${name}: ${result.failure.message}`]
      }),
    ),
  )

const FROM = 10
const TO = 29
const SIZE = 4

const eventAt = (primary: number, interests: ReadonlyArray<string>): SourceEvent => ({
  cursor: { primary, secondary: 1 },
  index: 0,
  interests,
  time: primary * 1000,
  fields: () => ({ number: primary }),
})

const read = (from: number, to: number, interests: ReadonlyArray<string>, version: number): SourceBatch => ({
  events: Array.from({ length: to - from + 1 }, (_, i) => from + i).flatMap((primary) =>
    interests.length === 0 ? [] : [eventAt(primary, interests)],
  ),
  upTo: endOf(to),
  resume: [{ primary: to, hash: `hash-${to}` }],
  interests: version,
})

/** A feed of one event a primary that ends at TO; `change` breaks its batches, `source` the rest. */
const counter = (
  change: (batch: SourceBatch, by: "run" | "scan") => SourceBatch = (batch) => batch,
  override: (source: Source<object>) => Partial<Source<object>> = () => ({}),
  plugin: Partial<SourcePlugin<{ readonly ok: true }, object>> = {},
) =>
  SourcePlugin.make({
    name: "counter",
    config: Schema.Struct({ ok: Schema.Literal(true) }),
    selector: Schema.Struct({}),
    describe: () => ({ fields: { kind: "record", fields: { number: { kind: "number" } } }, identity: ["number"] }),
    ...plugin,
    make: () => {
      const source: Source<object> = {
        start: Effect.succeed(endOf(FROM - 1)),
        run: Effect.fnUntraced(function* ({ resume, interests, emit }) {
          let next = resume.cursor.secondary === MAX_SECONDARY ? resume.cursor.primary + 1 : resume.cursor.primary
          while (next <= TO) {
            const to = Math.min(TO, next + SIZE - 1)
            const set = yield* interests
            const batch = read(
              next,
              to,
              set.interests.map(({ id }) => id),
              set.version,
            )
            const { primary, secondary } = resume.cursor
            const events = batch.events.filter(({ cursor }) => cursor.primary > primary || cursor.secondary > secondary)
            yield* emit(change({ ...batch, events }, "run"))
            next = to + 1
          }
          return yield* Effect.never
        }),
        scan: ({ from, to, interests }) =>
          Stream.range(0, Math.floor((to - from) / SIZE)).pipe(
            Stream.map((i) =>
              change(
                read(
                  from + i * SIZE,
                  Math.min(to, from + i * SIZE + SIZE - 1),
                  interests.interests.map(({ id }) => id),
                  interests.version,
                ),
                "scan",
              ),
            ),
          ),
      }
      return Effect.succeed({ ...source, ...override(source) })
    },
  })

const checkSource = (plugin: SourcePlugin) =>
  failing(
    sourceConformance({
      plugin,
      config: { ok: true },
      refusedConfigs: [{ ok: false }],
      selectors: [{}, {}],
      refusedSelectors: [{ x: 1 }],
      range: { from: FROM, to: TO },
    }),
  )

const mapEvents = (change: (event: SourceEvent) => SourceEvent) => (batch: SourceBatch) => ({
  ...batch,
  events: batch.events.map(change),
})

let readings = 0

describe("sourceConformance", () => {
  it.live("passes a source that keeps the contract", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* checkSource(counter()), [])
    }),
  )

  const faults: ReadonlyArray<readonly [string, SourcePlugin, RegExp]> = [
    ["events out of order", counter((b) => ({ ...b, events: b.events.toReversed() })), /out of order/],
    [
      "an event behind the end of its batch",
      counter((b) => ({ ...b, upTo: { primary: b.upTo.primary, secondary: 0 } })),
      /behind its end/,
    ],
    [
      "an event that the batch before should have held",
      counter(mapEvents((e) => ({ ...e, cursor: { primary: e.cursor.primary - 1, secondary: 1 } }))),
      /at or before its beginning/,
    ],
    [
      "an event that differs in each reading",
      counter(mapEvents((e) => ({ ...e, fields: () => ({ number: readings++ }) }))),
      /two scans of one range differ/,
    ],
    [
      "a run that loses events",
      counter((b, by) => (by === "run" ? { ...b, events: b.events.slice(1) } : b)),
      /a scan and a run differ: only the first has .*"primary":10/,
    ],
    [
      "events that cannot be told apart",
      counter((b) => ({ ...b, events: b.events.flatMap((e) => [e, e]) })),
      /index must differ/,
    ],
    [
      "fields that it did not describe",
      counter(mapEvents((e) => ({ ...e, fields: () => ({}) }))),
      /'number' should be/,
    ],
    [
      "an identity that it does not yield",
      counter(undefined, undefined, {
        describe: () => ({ fields: { kind: "record", fields: {} }, identity: ["number"] }),
      }),
      /names no field/,
    ],
    [
      "interests that it was not given",
      counter(mapEvents((e) => ({ ...e, interests: ["other"] }))),
      /names the interest other/,
    ],
    ["a version that was never handed out", counter((b) => ({ ...b, interests: 99 })), /version/],
    [
      "hashes behind the end",
      counter((b) => ({ ...b, resume: [{ primary: 999, hash: "x" }] })),
      /records a hash of 999/,
    ],
    [
      "a scan that stops early",
      counter(undefined, (source) => ({ scan: (range) => source.scan({ ...range, to: range.to - 1 }) })),
      /scan to 29 ends at 28/,
    ],
    [
      "emits side by side",
      counter(undefined, (source) => ({
        run: (run) =>
          source.run({ ...run, emit: (batch) => Effect.asVoid(Effect.forkScoped(run.emit(batch))) as never }),
      })),
      /emit was called/,
    ],
    [
      "a resume that is not looked at",
      counter(undefined, (source) => ({
        run: (run) => source.run({ ...run, resume: { ...run.resume, cursor: endOf(FROM - 1), anchors: [] } }),
      })),
      /goes on behind the position/,
    ],
    [
      "a run that will not be interrupted",
      counter(undefined, (source) => ({
        run: (run) =>
          Effect.uninterruptible(
            Effect.timeoutOption(source.run(run), "4 seconds").pipe(
              Effect.andThen(Effect.succeed({ _tag: "Completed" } as const)),
            ),
          ),
      })),
      /ending after an interruption took more/,
    ],
    [
      "a feed that cannot be read",
      counter(undefined, () => ({ start: Effect.fail(new SourceUnavailable({ reason: "no route" })) })),
      /it failed: SourceUnavailable: no route/,
    ],
    [
      "wrong configs that it takes",
      counter(undefined, undefined, { config: Schema.Struct({ ok: Schema.Boolean }) as never }),
      /must be refused: {"ok":false}/,
    ],
  ]
  for (const [fault, plugin, message] of faults)
    it.live(`finds ${fault}`, () =>
      Effect.gen(function* () {
        assert.match((yield* checkSource(plugin)).join("\n"), message)
      }),
    )
})

type Deliver = Sink["deliver"]

const sinkOf = (deliver: Deliver, before: Effect.Effect<void, PluginRefused, Egress> = Effect.void) =>
  SinkPlugin.make({
    name: "test",
    config: Schema.Struct({ to: Schema.Literals(["good", "down", "silent"]), key: Schema.String }),
    make: ({ to, key }) =>
      Effect.as(before, {
        timeoutMs: 1000,
        deliver: (event, delivery) => {
          if (to === "silent") return Effect.never
          return to === "down" ? Effect.fail(new Transient({ reason: `refused ${key}` })) : deliver(event, delivery)
        },
      }),
  })

const checkSink = (plugin: SinkPlugin, secrets: ReadonlyArray<string> = []) =>
  failing(
    sinkConformance({
      plugin,
      environment: Layer.fresh(nothingOutside),
      config: { to: "good", key: "k3y" },
      refusedConfigs: [{ to: "nowhere", key: "" }],
      failures: [{ name: "the receiver is down", config: { to: "down", key: "k3y" }, expected: "Transient" }],
      stalled: { to: "silent", key: "k3y" },
      secrets,
    }),
  )

const good: Deliver = () => Effect.void
const noDigest: Deliver = (event) =>
  event.type === "digest" ? Effect.fail(new Permanent({ reason: "no digests" })) : Effect.void

describe("sinkConformance", () => {
  it.live("passes a sink that keeps the contract", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* checkSink(sinkOf(good)), [])
    }),
  )

  it.live("finds what does not keep it", () =>
    Effect.gen(function* () {
      assert.match(
        (yield* checkSink(sinkOf(noDigest))).join(),
        /^delivers a digest.*: it failed: Permanent: no digests$/,
      )

      const early = Effect.ignore(
        Egress.use((egress) =>
          egress.request({
            method: "POST",
            url: new URL("http://127.0.0.1"),
            headers: {},
            timeoutMs: 1,
            maxBytes: 1,
            overflow: "fail",
          }),
        ),
      )
      assert.match((yield* checkSink(sinkOf(good, early))).join(), /sends nothing.*make sent 1 requests/)
      assert.match((yield* checkSink(sinkOf(good), ["k3y"])).join(), /the reason of the failure shows a secret/)

      const permanent: SinkPlugin = {
        ...sinkOf(good),
        make: () => Effect.succeed({ deliver: () => Effect.fail(new Permanent({ reason: "no" })), timeoutMs: 0.5 }),
      }
      const found = (yield* checkSink(permanent)).join("\n")
      assert.match(found, /fails as Transient: .*the delivery failed as Permanent: no/)
      assert.match(found, /timeoutMs must be a positive number of whole ms, not 0.5/)
      assert.match(found, /the delivery to the stalled receiver ended by itself/)
    }),
  )
})
