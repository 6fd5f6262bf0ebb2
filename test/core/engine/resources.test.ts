import { assert, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { describe } from "vitest"
import { type Conflict, type NotFound, type Refused, Resources } from "../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"

const transfer = (value: number) => ({ name: "Transfer", value: BigInt(value) })
const network = { id: "test", module: "scripted", config: { key: "https://rpc.example/v1/secret" } }
const monitor = { id: "m", network: "test", selector: { name: "Transfer" }, sinks: ["mine"] }

const start = (feed: ScriptedFeed, deliver: () => Effect.Effect<void> = () => Effect.void) =>
  startRuntime({
    plugins: [scriptedSource(feed)],
    resources: { networks: [network], sinks: [{ id: "mine", deliver }], monitors: [monitor] },
  })

const paths = (refused: { readonly problems: ReadonlyArray<{ readonly path: string }> }) =>
  refused.problems.map(({ path }) => path)

const refusedBy = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), (error) => error as E & (Refused | Conflict | NotFound))

const snapshot = ({ networks, monitors, sinks }: Resources["Service"]) =>
  Effect.all([Effect.map(networks, (all) => all.map(({ revision, id }) => [id, revision])), monitors, sinks])

describe("bad input is refused with all problems and their paths, and changes nothing", () => {
  const cases: ReadonlyArray<
    readonly [string, (r: Resources["Service"]) => Effect.Effect<unknown, unknown>, ReadonlyArray<string>]
  > = [
    ["an unknown source module", (r) => r.putNetwork({ id: "n", module: "nope", config: {} }), ["module"]],
    [
      "unknown and wrong config fields",
      (r) => r.putNetwork({ id: "n", module: "scripted", config: { start: "one", nope: 1 } }),
      ["config.nope", "config.start"],
    ],
    [
      "a bad id and an unknown key",
      (r) => r.putNetwork({ id: "a b", module: "scripted", config: {}, x: 1 }),
      ["id", "x"],
    ],
    [
      "an unknown network and an unknown sink",
      (r) => r.putMonitor({ ...monitor, network: "no", sinks: ["mine", "gone"] }),
      ["network", "sinks.1"],
    ],
    [
      "an invalid selector",
      (r) => r.putMonitor({ ...monitor, selector: { name: "", other: 1 } }),
      ["selector.name", "selector.other"],
    ],
    [
      "a predicate over a field that is not there",
      (r) => r.putMonitor({ ...monitor, predicate: "args.amount > 1" }),
      ["predicate"],
    ],
    ["a predicate of the wrong type", (r) => r.putMonitor({ ...monitor, predicate: "args.value" }), ["predicate"]],
    [
      "a wrong retry policy",
      (r) =>
        r.putSink({ id: "mine", module: "host:mine", config: {}, retry: { initialBackoffMs: 10, maxBackoffMs: 1 } }),
      ["retry.initialBackoffMs"],
    ],
    [
      "policies below 1 and above their caps, all at once",
      (r) =>
        r.putSink({
          id: "mine",
          module: "host:mine",
          config: {},
          throttle: { maxDeliveries: 0, windowMs: 0 },
          aggregate: { windowMs: 86_400_001, maxBatch: 10_001 },
          concurrency: 101,
          buffer: "DISK",
        }),
      [
        "aggregate.maxBatch",
        "aggregate.windowMs",
        "buffer",
        "concurrency",
        "throttle.maxDeliveries",
        "throttle.windowMs",
      ],
    ],
    [
      "policies of zero",
      (r) =>
        r.putSink({
          id: "mine",
          module: "host:mine",
          config: {},
          aggregate: { windowMs: 0, maxBatch: 0 },
          concurrency: 0,
        }),
      ["aggregate.maxBatch", "aggregate.windowMs", "concurrency"],
    ],
    [
      "a threshold without its count, beside other problems",
      (r) =>
        r.putMonitor({ ...monitor, predicate: "args.nope", gate: { type: "threshold", windowMs: 0 }, sinks: ["gone"] }),
      ["gate.count", "gate.windowMs", "predicate", "sinks.0"],
    ],
    [
      "a window of a gate above its cap",
      (r) => r.putMonitor({ ...monitor, gate: { type: "max_once", windowMs: 24 * 86_400_000 + 1 } }),
      ["gate.windowMs"],
    ],
    ["a gate of no type", (r) => r.putMonitor({ ...monitor, gate: { windowMs: 1 } }), ["gate.type"]],
    [
      "max_once with a count",
      (r) => r.putMonitor({ ...monitor, gate: { type: "max_once", windowMs: 1, count: 2 } }),
      ["gate.count"],
    ],
    [
      "a key that is none, with the problems of the predicate",
      (r) =>
        r.putMonitor({
          ...monitor,
          predicate: "args.nope == 1",
          gate: { type: "max_once", windowMs: 1, by: "block" },
        }),
      ["gate.by", "predicate"],
    ],
    ["an unknown sink module", (r) => r.putSink({ id: "s", module: "nope", config: {} }), ["module"]],
    [
      "an unknown module beside a bad id and wrong policies",
      (r) => r.putSink({ id: "a b", module: "nope", config: {}, retry: { maxAttempts: 0 }, throttle: { windowMs: 0 } }),
      ["id", "module", "retry.maxAttempts", "throttle.windowMs"],
    ],
    [
      "a bad id beside a wrong config",
      (r) => r.putNetwork({ id: "a b", module: "scripted", config: { nope: 1 }, journalDepth: 0 }),
      ["config.nope", "id", "journalDepth"],
    ],
    ["no id and no module", (r) => r.putSink({ config: {}, concurrency: 0 }), ["concurrency", "id", "module"]],
    [
      "a mask of nothing beside a wrong field",
      (r) => r.putNetwork({ id: "new", module: "scripted", config: { key: "***", start: "one" } }),
      ["config.key", "config.start"],
    ],
    [
      "a key that does not compile beside a wrong window and a wrong type of a gate",
      (r) =>
        r.putMonitor({
          ...monitor,
          id: "a b",
          predicate: "args.nope == 1",
          gate: { type: "maxonce", windowMs: 0, by: "args.nope" },
          sinks: ["gone", "c d"],
        }),
      ["gate.by", "gate.type", "id", "predicate", "sinks.0", "sinks.1"],
    ],
    [
      "syntax that is wrong whatever the network is, on one that is unknown",
      (r) =>
        r.putMonitor({
          ...monitor,
          network: "no",
          predicate: "args.value >",
          gate: { type: "max_once", windowMs: 0, by: "args." },
        }),
      ["gate.by", "gate.windowMs", "network", "predicate"],
    ],
    [
      "a wrong selector beside expressions whose syntax is wrong",
      (r) =>
        r.putMonitor({
          ...monitor,
          selector: { name: "" },
          predicate: "(",
          gate: { type: "max_once", windowMs: 1, by: "" },
        }),
      ["gate.by", "predicate", "selector.name"],
    ],
  ]
  for (const [name, put, expected] of cases) {
    it.live(name, () =>
      Effect.gen(function* () {
        const resources = resourcesOf(yield* start(new ScriptedFeed()))
        const before = yield* snapshot(resources)
        const refused = yield* refusedBy(put(resources))
        assert.strictEqual(refused._tag, "Refused")
        assert.deepStrictEqual(paths(refused as Refused).toSorted(), expected)
        for (const { message } of (refused as Refused).problems) assert.isAbove(message.length, 10)
        assert.deepStrictEqual(yield* snapshot(resources), before)
      }),
    )
  }

  it.live("the messages say what it is and what is accepted", () =>
    Effect.gen(function* () {
      const resources = resourcesOf(yield* start(new ScriptedFeed()))
      const sink = { id: "mine", module: "host:mine", config: {} }
      const refusals = [
        yield* refusedBy(resources.putSink({ ...sink, throttle: { maxDeliveries: 0 }, aggregate: { windowMs: 9e7 } })),
        yield* refusedBy(resources.putMonitor({ ...monitor, gate: { type: "max_once", windowMs: 1, count: 2 } })),
      ] as ReadonlyArray<Refused>
      assert.deepStrictEqual(
        refusals.flatMap(({ problems }) => problems.map(({ message }) => message)),
        [
          "must be an integer between 1 and 2147483647, not 0",
          "must be an integer between 1 and 86400000 (one day in ms), not 90000000",
          "is not for max_once, which lets one hit through a window; leave it out, or make the type threshold",
        ],
      )
    }),
  )

  it.live("a gate is refused on a network whose events have no time", () =>
    Effect.gen(function* () {
      const { putMonitor } = resourcesOf(
        yield* startRuntime({
          plugins: [{ ...scriptedSource(new ScriptedFeed()), eventTime: false }],
          resources: { networks: [network], sinks: [{ id: "mine", deliver: () => Effect.void }] },
        }),
      )
      const gate = { type: "max_once", windowMs: 1 }
      const refused = (yield* refusedBy(putMonitor({ ...monitor, gate }))) as Refused
      assert.deepStrictEqual(refused.problems, [
        {
          path: "gate",
          message: "cannot be used here: a gate goes by event time, and the events of scripted have none",
        },
      ])
      yield* putMonitor(monitor)
    }),
  )
})

describe("resources", () => {
  it.live("take policies at their caps", () =>
    Effect.gen(function* () {
      const { putSink, putMonitor } = resourcesOf(yield* start(new ScriptedFeed()))
      const aggregate = { windowMs: 86_400_000, maxBatch: 10_000 }
      const capped = yield* putSink({ id: "mine", module: "host:mine", config: {}, aggregate, concurrency: 100 })
      assert.deepInclude(capped, { aggregate, concurrency: 100, throttle: null })
      const gate = { type: "threshold", count: 1_000, windowMs: 24 * 86_400_000, by: null } as const
      assert.deepStrictEqual((yield* putMonitor({ ...monitor, gate })).gate, gate)
    }),
  )

  it.live("show sensitive config masked, and a put of the mask keeps what is stored", () =>
    Effect.gen(function* () {
      const runtime = yield* start(new ScriptedFeed())
      const shown = yield* networkNow(runtime, "test")
      assert.deepStrictEqual(shown.config, { key: "https://rpc.example/***" })
      const again = yield* resourcesOf(runtime).putNetwork({ id: "test", module: "scripted", config: shown.config })
      assert.strictEqual(again.revision, shown.revision)
    }),
  )

  it.live("ifRevision and validateOnly guard a put", () =>
    Effect.gen(function* () {
      const resources = resourcesOf(yield* start(new ScriptedFeed()))
      const stale = yield* refusedBy(resources.putMonitor({ ...monitor, enabled: false }, { ifRevision: "0" }))
      assert.strictEqual(stale._tag, "Conflict")
      const checked = yield* resources.putMonitor({ ...monitor, enabled: false }, { validateOnly: true })
      assert.isFalse(checked.enabled)
      const [stored] = yield* resources.monitors
      assert.isTrue(stored!.enabled)
      const put = yield* resources.putMonitor({ ...monitor, enabled: false }, { ifRevision: stored!.revision })
      assert.strictEqual(put.revision, checked.revision)
    }),
  )

  it.live("that are needed or still owe are not deleted, unless the debts are discarded", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2)])
      const gate = yield* Deferred.make<void>()
      const runtime = yield* start(feed, () => Deferred.await(gate))
      const resources = resourcesOf(runtime)
      yield* waitUntil(
        "both are in flight",
        Effect.map(networkNow(runtime, "test"), ({ inFlightEvents }) => inFlightEvents === 2),
      )
      const refusals = [
        yield* refusedBy(resources.deleteNetwork("test")),
        yield* refusedBy(resources.deleteSink("mine")),
        yield* refusedBy(resources.deleteMonitor("m")),
      ]
      assert.deepStrictEqual(
        refusals.map(({ _tag, message }) => [_tag, message.replace(/ still owes.*/, " still owes")]),
        [
          ["Conflict", 'network "test" is named by the monitors m; delete them first'],
          ["Conflict", 'sink "mine" is named by the monitors m; take it out of them first'],
          ["Conflict", 'monitor "m" still owes'],
        ],
      )
      assert.strictEqual((yield* refusedBy(resources.deleteSink("nope")))._tag, "NotFound")
      yield* resources.deleteMonitor("m", { discard: true })
      yield* waitForCheckpoint(runtime, "test", 1)
      yield* resources.deleteSink("mine")
      yield* resources.deleteNetwork("test")
      assert.deepStrictEqual(yield* Effect.all([resources.networks, resources.monitors, resources.sinks]), [[], [], []])
    }),
  )

  it.live("the buffer of a sink can change while it owes: everything still arrives in order", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const reached = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const values: Array<number> = []
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: {
          networks: [{ ...network, config: { ...network.config, range: 1 } }],
          monitors: [monitor],
          sinks: [
            {
              id: "mine",
              deliver: (event) =>
                Effect.andThen(
                  Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate)),
                  Effect.sync(() => {
                    if (event.type === "match") values.push(Number((event.event["args"] as { value: string }).value))
                  }),
                ),
            },
          ],
        },
      })
      const { putSink } = resourcesOf(runtime)
      const put = (buffer: string) => putSink({ id: "mine", module: "host:mine", config: {}, buffer })
      yield* put("DURABLE")
      feed.append([transfer(1), transfer(2)])
      yield* Deferred.await(reached)
      yield* waitForCheckpoint(runtime, "test", 1)
      yield* put("MEMORY")
      feed.append([transfer(3)])
      yield* waitUntil(
        "it is waited for",
        Effect.map(networkNow(runtime, "test"), ({ inFlightEvents }) => inFlightEvents === 1),
      )
      yield* put("DURABLE")
      feed.append([transfer(4)])
      yield* put("MEMORY")
      yield* put("DURABLE")
      feed.append([transfer(5)])
      yield* put("MEMORY")
      feed.append([transfer(6)])
      yield* Deferred.succeed(gate, undefined)
      yield* waitForCheckpoint(runtime, "test", 5)
      yield* waitUntil("all arrived", () => values.length === 6)
      assert.deepStrictEqual(values, [1, 2, 3, 4, 5, 6])
    }),
  )

  it.live("a module and fixed config fields do not change while there is a checkpoint", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([])
      const runtime = yield* start(feed)
      yield* waitForCheckpoint(runtime, "test", 1)
      const refused = yield* refusedBy(resourcesOf(runtime).putNetwork({ ...network, config: { start: 5 } }))
      assert.strictEqual(refused._tag, "Conflict")
      assert.match(refused.message, /start of network "test" cannot change/)
    }),
  )

  it.live("a source that refuses to run makes its network FAILED with the reason, and a change tries again", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([])
      feed.refusal = "the node is of chain 5, not of chain 1"
      const runtime = yield* start(feed)
      yield* waitUntil(
        "FAILED",
        Effect.map(networkNow(runtime, "test"), ({ state }) => state === "FAILED"),
      )
      assert.strictEqual((yield* networkNow(runtime, "test")).error, feed.refusal)
      feed.refusal = null
      yield* resourcesOf(runtime).putNetwork({ ...network, config: { ...network.config, range: 5 } })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.strictEqual((yield* networkNow(runtime, "test")).state, "RUNNING")
    }),
  )

  it.live("testMonitor shows what a monitor would match before its gate, and why the gate could not judge it", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2), { ...transfer(3), time: null }])
      const { testMonitor } = resourcesOf(yield* start(feed))
      const gated = (by: string, predicate: string) =>
        testMonitor({ ...monitor, id: "new", predicate, gate: { type: "threshold", count: 9, windowMs: 1, by } }, 1)
      assert.strictEqual((yield* gated("args.value", "args.value < 3")).length, 2)
      const refusals = [
        yield* refusedBy(gated("args.value / 0", "args.value == 1")),
        yield* refusedBy(gated("args.value", "args.value == 3")),
      ] as ReadonlyArray<Refused>
      assert.deepStrictEqual(
        refusals.map(({ problems }) => problems[0]!),
        [
          { path: "gate.by", message: "division by zero (line 1, column 1)" },
          { path: "gate", message: "the event has no time" },
        ],
      )
    }),
  )

  it.live("testMonitor shows what a monitor would match, and stores nothing", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(7), transfer(70)])
      const runtime = yield* start(feed)
      const found = yield* resourcesOf(runtime).testMonitor({ ...monitor, id: "new", predicate: "args.value > 10" }, 2)
      assert.deepStrictEqual(
        found.map(({ monitor: id, event }) => [id, event["args"]]),
        [["new", { value: "70" }]],
      )
      assert.strictEqual((yield* resourcesOf(runtime).monitors).length, 1)
    }),
  )
})
