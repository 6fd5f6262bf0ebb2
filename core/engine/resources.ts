import { Context, Effect, Layer, Result } from "effect"
import { type Cursor, formatCursor, isAfter } from "../model/cursor.ts"
import type { NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import type { Egress } from "../plugin/egress.ts"
import type { SourceError } from "../plugin/error.ts"
import { type PluginReport, Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import { Storage } from "../storage/storage.ts"
import type { ResourceKind, Stored } from "../storage/stored.ts"
import { type CheckedSet, checkDefinitions, type DefinitionSet } from "./check-definitions.ts"
import { checkBuffers } from "./check-buffers.ts"
import { checkFixed } from "./check-fixed.ts"
import { Engine } from "./engine.ts"
import { Conflict, NotFound, Refused } from "./error.ts"
import { ACTIONS } from "../storage/events.ts"
import { hasActions, undeletable, unpausable } from "./actions-sink.ts"
import { testMonitor } from "./test-monitor.ts"
import type { MatchView, MonitorView, NetworkView, SinkView } from "./views.ts"
import { monitorView, networkView, sinkView } from "./views-of.ts"

export type * from "./views.ts"

export interface PutOptions {
  /** Conflict unless the stored revision is this. */
  readonly ifRevision?: string
  /** Checks everything and answers what would be stored, and stores nothing. */
  readonly validateOnly?: boolean
}

type Put<A> = Effect.Effect<A, Refused | Conflict | StorageError>
type Change<A> = Effect.Effect<A, Conflict | NotFound | NotOwner | StorageError>
type Delete = Effect.Effect<void, Conflict | NotFound | StorageError | NotOwner>

/**
 * Reads and changes networks, monitors and sinks. Inputs are unknown JSON in camelCase: they are checked whole, and
 * all problems are reported at once. A change is stored and queued when a call returns; `state` shows the rest.
 */
export class Resources extends Context.Service<
  Resources,
  {
    readonly networks: Effect.Effect<ReadonlyArray<NetworkView>, StorageError>
    readonly monitors: Effect.Effect<ReadonlyArray<MonitorView>, StorageError>
    readonly sinks: Effect.Effect<ReadonlyArray<SinkView>, StorageError>
    readonly plugins: Effect.Effect<ReadonlyArray<PluginReport>>
    readonly putNetwork: (input: unknown, options?: PutOptions) => Put<NetworkView>
    readonly putMonitor: (input: unknown, options?: PutOptions) => Put<MonitorView>
    readonly putSink: (input: unknown, options?: PutOptions) => Put<SinkView>
    readonly deleteNetwork: (id: string, options?: { readonly discard?: boolean }) => Delete
    readonly deleteMonitor: (id: string, options?: { readonly discard?: boolean }) => Delete
    readonly deleteSink: (id: string, options?: { readonly discard?: boolean }) => Delete
    /**
     * Lets a sink rest, for all networks: what it should have heard becomes dead letters, or waits in a durable buffer.
     * Stored; a put does not end it.
     */
    readonly pauseSink: (id: string) => Effect.Effect<SinkView, Conflict | NotFound | StorageError>
    /** Ends the rest of a sink, whatever it was for. */
    readonly resumeSink: (id: string) => Effect.Effect<SinkView, Conflict | NotFound | StorageError>
    /** Lets a network rest: its source and its sinks; what is owed stays owed. Stored. */
    readonly pauseNetwork: (id: string) => Change<NetworkView>
    /** Ends the rest, or tries a FAILED network again. */
    readonly resumeNetwork: (id: string) => Change<NetworkView>
    /**
     * Takes back everything behind a cursor, as if the chain had: retracts what the journal holds, then goes on from there
     * (or stays paused). Not above the checkpoint, not below the start.
     */
    readonly rewindNetwork: (id: string, to: Cursor) => Change<NetworkView>
    /** What a monitor would match in one primary (block), before its gate; nothing is stored or sent. */
    readonly testMonitor: (
      input: unknown,
      primary: number,
    ) => Effect.Effect<ReadonlyArray<MatchView>, Refused | NotFound | StorageError | SourceFailure>
  }
>()("blockwatcher/Resources") {
  static readonly layer: Layer.Layer<Resources, never, Engine | Storage | Plugins | Egress | Secrets> = Layer.effect(
    Resources,
    Effect.suspend(() => makeResources()),
  )
}

/** A source could not answer a read that was made on request. */
export type SourceFailure = SourceError

const makeResources = Effect.fnUntraced(function* () {
  const engine = yield* Engine
  const storage = yield* Storage
  const plugins = yield* Plugins
  const context = yield* Effect.context<Egress | Secrets>()
  const { catalog, sinks } = engine
  const check = (set: DefinitionSet) =>
    Effect.provideContext(checkDefinitions({ catalog, sinks, plugins }, set), context)

  const deadLetterCounts = new Map<string, number>()
  const networkOf = Effect.fnUntraced(function* (stored: Stored<NetworkDefinition>) {
    const { id } = stored.definition
    const deadLetters = yield* storage.deadLetterCount({ network: id }).pipe(
      // Without the database the last known number has to do: what is wrong is shown beside it.
      Effect.catchTag("StorageError", () => Effect.succeed(deadLetterCounts.get(id) ?? 0)),
    )
    deadLetterCounts.set(id, deadLetters)
    return networkView(plugins, stored, engine.activity(id), deadLetters)
  })
  const sinkOf = (stored: Stored<SinkDefinition>) => sinkView(plugins, stored, sinks.handle(stored.definition.id))

  /** Checks one definition and its revision, stores it unless it only was to be checked or is what is stored. */
  const put = <A>(
    kind: ResourceKind,
    input: unknown,
    options: PutOptions,
    revisionOf: (id: string) => string | undefined,
    take: (set: CheckedSet) => { readonly id: string; readonly revision: string; readonly view: A } | undefined,
  ) =>
    engine.exclusively(
      Effect.gen(function* () {
        const checked = yield* check(setOf(kind, input))
        if (Result.isFailure(checked)) {
          const { problems } = checked.failure[0]!
          return yield* new Refused({ resource: labelOf(kind, input), problems })
        }
        const taken = take(checked.success)!
        const stored = revisionOf(taken.id)
        if (options.ifRevision !== undefined && options.ifRevision !== stored) {
          const is = stored === undefined ? "does not exist" : `is at revision ${stored}`
          return yield* new Conflict({ reason: `${kind} "${taken.id}" ${is}, not at ${options.ifRevision}` })
        }
        yield* checkFixed(catalog, plugins, storage, checked.success.networks)
        yield* checkBuffers(catalog, sinks, storage, checked.success.sinks)
        if (options.validateOnly === true) return taken.view
        yield* taken.revision === stored ? engine.retry(kind, taken.id) : engine.put(checked.success, [])
        return taken.view
      }),
    )

  const known = (id: string): Effect.Effect<Stored<NetworkDefinition>, NotFound> => {
    const stored = catalog.networks.get(id)
    return stored === undefined || catalog.deleting.has(id)
      ? Effect.fail(new NotFound({ resource: `network "${id}"` }))
      : Effect.succeed(stored)
  }

  const setPaused = Effect.fnUntraced(function* (id: string, paused: boolean) {
    const stored = yield* known(id)
    yield* engine.pauseNetwork(id, paused)
    yield* Effect.logInfo(
      `network ${id} is ${paused ? "paused on request; resumeNetwork lets it go on" : "resumed on request"}`,
    )
    return yield* networkOf(stored)
  })

  const setSinkPaused = Effect.fnUntraced(function* (id: string, paused: string | null) {
    return yield* engine.exclusively(
      Effect.gen(function* () {
        const stored = sinks.get(id)
        if (stored === undefined) return yield* new NotFound({ resource: `sink "${id}"` })
        yield* engine.pauseSink(id, paused)
        yield* Effect.logInfo(
          `sink ${id} is ${paused === null ? "resumed on request" : "paused on request; resumeSink lets it go on"}`,
        )
        return sinkOf(stored)
      }),
    )
  })

  return Resources.of({
    networks: Effect.suspend(() => Effect.forEach(catalog.networks.values(), networkOf)),
    monitors: Effect.sync(() => [...catalog.monitors.values()].map(monitorView)),
    sinks: Effect.sync(() => sinks.all().map(sinkOf)),
    plugins: Effect.succeed(plugins.reports),
    putNetwork: Effect.fn("Resources.putNetwork")(function* (input, options = {}) {
      const stored = yield* put(
        "network",
        input,
        options,
        (id) => catalog.networks.get(id)?.revision,
        ({ networks: [network] }) =>
          network && { id: network.definition.id, revision: network.revision, view: network },
      )
      return yield* networkOf(stored)
    }),
    putMonitor: Effect.fn("Resources.putMonitor")(function* (input, options = {}) {
      const entry = yield* put(
        "monitor",
        input,
        options,
        (id) => catalog.monitors.get(id)?.stored.revision,
        ({ monitors: [monitor] }) =>
          monitor && { id: monitor.stored.definition.id, revision: monitor.stored.revision, view: monitor },
      )
      return monitorView(entry)
    }),
    putSink: Effect.fn("Resources.putSink")(function* (input, options = {}) {
      const stored = yield* put(
        "sink",
        input,
        options,
        (id) => sinks.get(id)?.revision,
        ({ sinks: [sink] }) => sink && { id: sink.definition.id, revision: sink.revision, view: sink },
      )
      return sinkOf(stored)
    }),
    deleteNetwork: Effect.fn("Resources.deleteNetwork")(function* (id, { discard = false } = {}) {
      const unnamed = Effect.gen(function* () {
        const monitors = catalog.monitorsOf(id).map(({ stored }) => stored.definition.id)
        if (monitors.length === 0) return
        const reason = `network "${id}" is named by the monitors ${monitors.join(", ")}; delete them first`
        return yield* new Conflict({ reason })
      })
      yield* engine.deleteNetwork(id, { exists: Effect.suspend(() => known(id)), unnamed }, discard)
      yield* logDeletion("network", id, discard)
    }),
    deleteMonitor: Effect.fn("Resources.deleteMonitor")(function* (id, { discard = false } = {}) {
      yield* engine.exclusively(
        Effect.gen(function* () {
          if (!catalog.monitors.has(id)) return yield* new NotFound({ resource: `monitor "${id}"` })
          yield* engine.deleteMonitor(id, discard)
          yield* logDeletion("monitor", id, discard)
        }),
      )
    }),
    deleteSink: Effect.fn("Resources.deleteSink")(function* (id, { discard = false } = {}) {
      yield* engine.exclusively(
        Effect.gen(function* () {
          if (sinks.get(id) === undefined) return yield* new NotFound({ resource: `sink "${id}"` })
          if (id === ACTIONS && hasActions(plugins)) return yield* new Conflict({ reason: undeletable })
          const monitors = [...catalog.monitors.values()]
            .filter(({ stored }) => stored.definition.sinks.includes(id))
            .map(({ stored }) => stored.definition.id)
          if (monitors.length > 0) {
            const reason = `sink "${id}" is named by the monitors ${monitors.join(", ")}; take it out of them first`
            return yield* new Conflict({ reason })
          }
          yield* engine.deleteSink(id, discard)
          yield* logDeletion("sink", id, discard)
        }),
      )
    }),
    pauseSink: Effect.fn("Resources.pauseSink")((id: string) =>
      id === ACTIONS && hasActions(plugins)
        ? Effect.fail(new Conflict({ reason: unpausable }))
        : setSinkPaused(id, "by an operator"),
    ),
    resumeSink: Effect.fn("Resources.resumeSink")((id: string) => setSinkPaused(id, null)),
    pauseNetwork: Effect.fn("Resources.pauseNetwork")((id: string) => setPaused(id, true)),
    resumeNetwork: Effect.fn("Resources.resumeNetwork")((id: string) => setPaused(id, false)),
    rewindNetwork: Effect.fn("Resources.rewindNetwork")(function* (id, to) {
      const stored = yield* known(id)
      const pipeline = yield* storage.pipeline(id)
      const refuse = (why: string) =>
        new Conflict({ reason: `network "${id}" cannot be rewound to ${formatCursor(to)}: ${why}` })
      const { module } = stored.definition
      if (plugins.source(module)?.resumable === false) {
        return yield* refuse(`${module} cannot go back, its cursors are no positions that could be read again`)
      }
      if (pipeline === null || pipeline.checkpoint === null) return yield* refuse("it has not begun yet")
      const { checkpoint, start } = pipeline
      if (isAfter(to, checkpoint)) return yield* refuse(`its checkpoint is ${formatCursor(checkpoint)}`)
      // Databases of the first version did not record it.
      if (start !== null && isAfter(start, to)) return yield* refuse(`it started behind ${formatCursor(start)}`)
      yield* engine.takeBack(id, { from: to, cause: "rewound by an operator" })
      return yield* networkOf(stored)
    }),
    testMonitor: Effect.fn("Resources.testMonitor")(function* (input, primary) {
      const checked = yield* check(setOf("monitor", input))
      if (Result.isFailure(checked)) {
        const { problems } = checked.failure[0]!
        return yield* new Refused({ resource: labelOf("monitor", input), problems })
      }
      const { stored, active } = checked.success.monitors[0]!
      const network = catalog.networks.get(stored.definition.network)
      if (network === undefined || Result.isFailure(active)) {
        return yield* new NotFound({ resource: `network "${stored.definition.network}"` })
      }
      const start = (yield* storage.pipeline(stored.definition.network))?.start ?? null
      return yield* testMonitor(plugins, network.definition, stored.definition, active.success, primary, start).pipe(
        Effect.provideContext(context),
      )
    }),
  })
})

const logDeletion = (kind: ResourceKind, id: string, discard: boolean) =>
  Effect.logInfo(`${kind} ${id} is deleted on request${discard ? ", with what it owed" : ""}`)

const setOf = (kind: ResourceKind, input: unknown): DefinitionSet => ({
  networks: kind === "network" ? [input] : [],
  monitors: kind === "monitor" ? [input] : [],
  sinks: kind === "sink" ? [input] : [],
})

const labelOf = (kind: ResourceKind, input: unknown): string =>
  typeof input === "object" && input !== null && "id" in input && typeof input.id === "string"
    ? `${kind} "${input.id}"`
    : `the ${kind}`
