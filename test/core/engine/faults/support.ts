import { Context, type Duration, Effect, Fiber, Latch, Layer, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  Blockwatcher,
  DeadLetters,
  type HostSink,
  layerSqlite,
  type NetworkView,
  type RuntimeOptions,
  type SinkEvent,
  type Source,
  type SourceError,
  type SourceOutcome,
  SourcePlugin,
  type SourceRun,
  Storage,
} from "../../../../core/index.ts"
import { networkNow, type Runtime } from "../../../support/runtime.ts"
import { type ScriptedEvent, type ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"

export const transfer = (value: number): ScriptedEvent => ({ name: "Transfer", value: BigInt(value) })

/** Three attempts, one right after the other. */
export const fast = { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 2 }

/** The monitor `all`: every transfer of the network `test`. */
export const allTransfers = (sinks: ReadonlyArray<string>, over: object = {}) => ({
  id: "all",
  network: "test",
  selector: { name: "Transfer" },
  sinks,
  ...over,
})

/** The scripted network `test`, and the monitor `all` into the first of the sinks. */
export const definitions = (sinks: readonly [HostSink, ...Array<HostSink>], config: object = {}) => ({
  networks: [{ id: "test", module: "scripted", config }],
  monitors: [allTransfers([sinks[0].id])],
  sinks,
})

/** A sink that keeps what it is sent. */
export const recorder = (id: string) => {
  const values: Array<number> = []
  const deliver = (event: SinkEvent) =>
    Effect.sync(() => {
      if (event.type === "match") values.push(Number((event.event["args"] as { readonly value: string }).value))
    })
  return { values, sink: { id, deliver } satisfies HostSink }
}

/** Starts a runtime over a database in memory that differs as `alter` says; answers it with the database beneath. */
export const startOver = Effect.fnUntraced(function* (
  alter: (storage: Storage["Service"]) => Partial<Storage["Service"]>,
  options: Omit<RuntimeOptions<never>, "storage">,
) {
  const storage = Context.get(yield* Layer.build(layerSqlite({ path: ":memory:" })), Storage)
  const altered = Layer.succeed(Storage, { ...storage, ...alter(storage) })
  return { runtime: yield* Layer.build(Blockwatcher.layer({ storage: altered, ...options })), storage }
})

/** The path of a database that is removed with the scope. */
export const databaseFile = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "blockwatcher-faults-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true })),
).pipe(Effect.map((directory) => join(directory, "test.db")))

interface Selector {
  readonly name: string
}

/** The scripted source with another `run`, which is given that of the script. */
export const sourceThatRuns = (
  feed: ScriptedFeed,
  run: (
    script: Source<Selector>["run"],
    given: SourceRun<Selector>,
  ) => Effect.Effect<SourceOutcome, SourceError, Scope.Scope>,
) => {
  const plugin = scriptedSource(feed)
  return SourcePlugin.make({
    ...plugin,
    make: (config) =>
      Effect.map(plugin.make(config), (source) => ({ ...source, run: (given) => run(source.run, given) })),
  })
}

/** A place where fibers wait while it is closed. */
export class Gate {
  readonly #opened: Latch.Latch
  readonly #reached = Latch.makeUnsafe(false)
  #closed: boolean

  constructor(state: "open" | "closed") {
    this.#closed = state === "closed"
    this.#opened = Latch.makeUnsafe(!this.#closed)
  }

  readonly close = Effect.sync(() => {
    this.#closed = true
    this.#opened.closeUnsafe()
  })

  readonly open = Effect.sync(() => {
    this.#closed = false
    this.#opened.openUnsafe()
  })

  readonly pass = Effect.suspend(() => {
    if (this.#closed) this.#reached.openUnsafe()
    return this.#opened.await
  })

  /** Succeeds when a fiber has come to the closed gate. */
  readonly reached = Effect.suspend(() => this.#reached.await)
}

/** Waits until the network `test` is shown as the condition says. */
export const waitForNetwork = (runtime: Runtime, what: string, holds: (network: NetworkView) => boolean) =>
  waitUntil(what, Effect.map(networkNow(runtime, "test"), holds))

export const waitForInFlight = (runtime: Runtime) =>
  waitForNetwork(runtime, "a delivery is in flight", ({ inFlightEvents }) => inFlightEvents > 0)

/** Why deliveries of the network `test` died. */
export const reasonsOfDeath = (runtime: Context.Context<DeadLetters>) =>
  Context.get(runtime, DeadLetters)
    .list({ network: "test", first: 50, after: null })
    .pipe(Effect.map(({ items }) => items.map(({ node }) => node.reason)))

/** Whether a fiber ends in time; 8 seconds are more than any bound on a stop with a short drain adds up to. */
export const endsInTime = <A, E>(fiber: Fiber.Fiber<A, E>, time: Duration.Input = "8 seconds") =>
  Effect.map(Effect.timeoutOption(Fiber.await(fiber), time), (exit) => exit._tag === "Some")
