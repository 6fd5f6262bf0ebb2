import { Cause, Clock, Deferred, Effect, Exit, Option, Queue, type Scope } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { CompiledMonitor } from "../pipeline/matcher.ts"
import { InterestVersions } from "../pipeline/interest-versions.ts"
import { untilStored } from "../pipeline/persist.ts"
import { makePipeline, type Pipeline, type PipelineFault } from "../pipeline/pipeline.ts"
import { PipelineStatus } from "../pipeline/status.ts"
import type { Egress } from "../plugin/egress.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { Owner, Storage } from "../storage/storage.ts"
import type { Catalog, MonitorEntry } from "./catalog.ts"
import type { FeedHub } from "./feed/hub.ts"
import { readinessOf } from "./readiness.ts"
import type { SinkRegistry } from "./sink-registry.ts"
import { runSource } from "./source-runner.ts"
import { makeSourceSlot, type SourceExit } from "./source-slot.ts"
import type { CheckpointView, NetworkState } from "./views.ts"

/** What a network does at present. */
export interface NetworkActivity {
  readonly state: NetworkState
  readonly error: string | null
  readonly checkpoint: CheckpointView | null
  readonly head: Cursor | null
  readonly inFlightEvents: number
  /** It only waits for a monitor: nothing is wrong. */
  readonly idle: boolean
}

/** Runs one network: its pipeline for as long as it lives, its source while it can. */
export interface Supervisor {
  readonly activity: () => NetworkActivity
  /** Looks again at definitions, monitors and sinks, and brings what runs in line with them. */
  readonly refresh: Effect.Effect<void>
  /** Closes the pipeline, runs a change of its rows, and builds it again from what is there then. */
  readonly between: <A, E>(change: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Drains and ends; succeeds when nothing of the network runs any more. */
  readonly stop: Effect.Effect<void>
}

type Command =
  | { readonly _tag: "Refresh" }
  | { readonly _tag: "Stop" }
  | { readonly _tag: "Between"; readonly change: Effect.Effect<void> }
  | { readonly _tag: "SourceEnded"; readonly exit: SourceExit; readonly run: number }

/** Waits before a pipeline that broke is built again, in ms: doubling from the first to the last. */
const REBUILD_MS = { first: 500, last: 30_000 }

/** How much longer than the drain a stop may take before what still runs is interrupted, in ms. */
const STOP_GRACE_MS = 3_000

/** A run of this length, in ms, shows that what broke had mended: the waits start anew. */
const HEALTHY_MS = 60_000

const isTaken = (cause: Cause.Cause<PipelineFault>): boolean => {
  const failure = Cause.findErrorOption(cause)
  return Option.isSome(failure) && failure.value._tag === "NotOwner"
}

const messageOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

export const makeSupervisor = Effect.fnUntraced(function* (options: {
  readonly network: string
  readonly catalog: Catalog
  readonly sinks: SinkRegistry
  readonly plugins: Plugins["Service"]
  readonly storage: Storage["Service"]
  readonly hub: FeedHub["Service"]
  readonly drainTimeoutMs: number
  /** Housekeeping beside the pipeline; runs until interrupted. */
  readonly maintain: (owner: Owner) => Effect.Effect<void>
}): Effect.fn.Return<Supervisor, never, Scope.Scope | Egress | Secrets> {
  const { network, catalog, sinks, storage, hub } = options
  const commands = yield* Queue.bounded<Command>(64)
  const interests = new InterestVersions()
  let published: ReadonlyArray<unknown> = []
  let status = new PipelineStatus()
  let pipeline: Pipeline | null = null
  let checkpoint: CheckpointView | null = null
  let phase: "working" | "draining" | "completed" = "working"
  let stopping = false
  /** What is to run once no pipeline does: kept here, so that a pipeline that breaks on the way does not lose it. */
  let change: Effect.Effect<void> | null = null
  let refreshing = false
  /** Why the network is FAILED; the next command tries again. */
  let failure: string | null = null
  let pipelineError: string | null = null
  /** Another process took the network over. */
  let taken = false

  const fail = (reason: string) => {
    const known = failure === reason
    failure = reason
    return known ? Effect.void : Effect.logError(`the network is FAILED: ${reason}`)
  }

  const publishInterests = () => {
    const active = catalog
      .enabledMonitorsOf(network)
      .flatMap((entry) => (entry.active._tag === "Success" ? [entry.active.success] : []))
    if (active.length === published.length && active.every((monitor, i) => monitor === published[i])) return
    published = active
    interests.replace(active)
  }

  /** The entry that holds this very compilation: none for a monitor that is gone or was edited since. */
  const presentEntry = (monitor: CompiledMonitor): MonitorEntry | undefined => {
    const entry = catalog.monitors.get(monitor.id)
    return entry?.active._tag === "Success" && entry.active.success.compiled === monitor ? entry : undefined
  }

  const openPipeline = Effect.fnUntraced(function* () {
    const owner = yield* storage.claim(network).pipe(untilStored(status))
    const stored = yield* storage.pipeline(network).pipe(untilStored(status))
    if (stored !== null && stored.checkpoint !== null) {
      checkpoint = { network, cursor: stored.checkpoint, updatedAt: stored.checkpointAt }
    }
    // What an earlier owner showed is read before any checkpoint of this one covers it.
    if (stored !== null) yield* hub.shown(network, stored.feedPosition)
    yield* Effect.forkScoped(options.maintain(owner))
    return yield* makePipeline({
      owner,
      storage,
      status,
      interests,
      sinksOf: (monitor) => catalog.sinksOf(network, monitor),
      sinkHandle: sinks.handle,
      isEffective: (monitor) => presentEntry(monitor)?.effectiveFrom !== null,
      onEffective: (monitor, from) => {
        const entry = presentEntry(monitor)
        if (entry !== undefined) entry.effectiveFrom = from
      },
      onPredicateFailure: (monitor, reason) => {
        const entry = catalog.monitors.get(monitor)
        if (entry !== undefined) entry.error = reason
      },
      onShown: (position) => hub.shown(network, position),
      onCheckpoint: (cursor: Cursor, at: number) => {
        checkpoint = { network, cursor, updatedAt: at }
        return hub.checkpoint(checkpoint)
      },
    })
  })

  /** Works until it is told to stop, or to let a change run while there is no pipeline. */
  const work = Effect.fnUntraced(function* (
    running: Pipeline,
  ): Effect.fn.Return<"between" | "stopped", PipelineFault, Scope.Scope | Egress | Secrets> {
    /** The revision of the network that the source runs with, or waits to run with again; null while it rests. */
    let revision: string | null = null
    const source = yield* makeSourceSlot(
      Effect.scoped(
        Effect.suspend(() =>
          runSource({
            plugins: options.plugins,
            definition: catalog.networks.get(network)!.definition,
            storage,
            pipeline: running,
            status,
            interests,
          }),
        ),
      ),
      (exit, run) => Effect.asVoid(Queue.offer(commands, { _tag: "SourceEnded", exit, run })),
    )

    const rest = Effect.suspend(() => {
      revision = null
      phase = "working"
      status.reading = false
      status.source = null
      return source.stop
    })

    const refresh = Effect.fnUntraced(function* () {
      refreshing = false
      publishInterests()
      const readiness = readinessOf(catalog, sinks, network)
      if (readiness._tag === "Broken") {
        yield* rest
        return yield* fail(readiness.reason)
      }
      const failed = failure !== null
      failure = null
      const present = catalog.networks.get(network)?.revision ?? null
      // A feed whose start was resolved goes on without monitors: it is simply quiet.
      const begun = running.minted() !== null
      if (readiness._tag === "Waiting" && !(readiness.idle && begun)) return yield* rest
      if (revision === present && !failed) return
      revision = present
      phase = "working"
      yield* source.start
    })

    const onSourceEnded = Effect.fnUntraced(function* (exit: SourceExit) {
      if (Exit.isSuccess(exit)) {
        if (exit.value._tag === "Invalidated") {
          return yield* fail(`the chain took back what was already matched: ${exit.value.cause}`)
        }
        phase = "completed"
        return yield* Effect.logInfo("the source's feed has ended")
      }
      const error = Cause.findErrorOption(exit.cause)
      if (error._tag === "Some" && (error.value._tag === "PluginRefused" || error.value._tag === "SourceRefused")) {
        return yield* fail(error.value.reason)
      }
      status.reading = false
      status.source = messageOf(exit.cause)
      yield* error._tag === "Some"
        ? Effect.logWarning(`the source stopped: ${status.source}; it is started again`)
        : Effect.logError("the source broke; it is started again", exit.cause)
      yield* source.startLater
    })

    const drain = Effect.gen(function* () {
      phase = "draining"
      yield* source.stop
      if (yield* running.drain(options.drainTimeoutMs)) return
      yield* Effect.logWarning(
        `not everything was delivered within ${options.drainTimeoutMs} ms; the rest is sent at the next start`,
      )
    })

    yield* refresh()
    while (true) {
      const command = yield* Queue.take(commands)
      if (command._tag === "Stop") {
        yield* drain
        return "stopped"
      }
      if (command._tag === "Between") {
        change = command.change
        yield* source.stop
        yield* running.drain(0)
        return "between"
      }
      if (command._tag === "Refresh") yield* refresh()
      else if (source.isPresent(command.run)) yield* onSourceEnded(command.exit)
    }
  })

  const runOnce = Effect.suspend(() => {
    status = new PipelineStatus()
    return Effect.scoped(
      Effect.gen(function* () {
        const opened = yield* openPipeline()
        pipeline = opened
        return yield* Effect.raceFirst(work(opened), opened.fault)
      }),
    )
  }).pipe(Effect.ensuring(Effect.sync(() => (pipeline = null))))

  /** Waits before the next run, or until a command comes. */
  const restUntilCommand = (ms: number | null) =>
    ms === null ? Effect.asVoid(Queue.peek(commands)) : Effect.asVoid(Effect.timeoutOption(Queue.peek(commands), ms))

  const runChange = Effect.suspend(() => {
    const waiting = change ?? Effect.void
    change = null
    return waiting
  })

  const loop = Effect.gen(function* () {
    let faults = 0
    while (true) {
      if (stopping) return
      const startedAt = yield* Clock.currentTimeMillis
      const exit: Exit.Exit<"between" | "stopped", PipelineFault> = yield* Effect.exit(runOnce)
      yield* runChange
      if (Exit.isSuccess(exit)) {
        if (exit.value === "stopped") return
        continue
      }
      pipelineError = messageOf(exit.cause)
      if (stopping) return yield* Effect.logError("the pipeline broke while it was stopped", exit.cause)
      if (isTaken(exit.cause)) {
        // Without a lease to wait for, taking it back at once would make two processes fight for it.
        yield* Effect.logError(`${pipelineError}; this process leaves it alone until something is changed here`)
        taken = true
        yield* restUntilCommand(null)
        taken = false
      } else {
        yield* Effect.logError("the pipeline broke; it is built again from its rows", exit.cause)
        if ((yield* Clock.currentTimeMillis) - startedAt > HEALTHY_MS) faults = 0
        yield* restUntilCommand(Math.min(REBUILD_MS.last, REBUILD_MS.first * 2 ** Math.min(faults++, 10)))
      }
      pipelineError = null
    }
  })
  const ended = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkScoped(
    loop.pipe(Effect.ensuring(Deferred.succeed(ended, undefined)), Effect.annotateLogs({ network })),
  )

  return {
    activity: () => {
      const readiness = readinessOf(catalog, sinks, network)
      const working = pipeline !== null && (status.reading || phase === "completed")
      const waiting = readiness._tag === "Waiting" && !(readiness.idle && working) ? readiness.reason : null
      const state: NetworkState = taken
        ? "STANDBY"
        : failure !== null
          ? "FAILED"
          : phase === "draining"
            ? "DRAINING"
            : working
              ? "RUNNING"
              : "STARTING"
      return {
        state,
        error: failure ?? pipelineError ?? status.trouble ?? waiting,
        checkpoint,
        head: status.head,
        inFlightEvents: pipeline?.inFlight() ?? 0,
        idle:
          waiting !== null &&
          (failure ?? pipelineError ?? status.trouble) === null &&
          readiness._tag === "Waiting" &&
          readiness.idle,
      }
    },
    refresh: Effect.suspend(() => {
      // Published at once: what is fetched after a mutation answered is matched by the monitors as they are now.
      publishInterests()
      if (refreshing) return Effect.void
      refreshing = true
      return Effect.asVoid(Queue.offer(commands, { _tag: "Refresh" }))
    }),
    between: <A, E>(change: Effect.Effect<A, E>) =>
      Effect.gen(function* () {
        const result = yield* Deferred.make<A, E>()
        yield* Queue.offer(commands, { _tag: "Between", change: Effect.asVoid(Deferred.complete(result, change)) })
        yield* Effect.raceFirst(Effect.exit(Deferred.await(result)), Deferred.await(ended))
        // After the last run there is no pipeline that the change could disturb.
        return yield* Deferred.isDoneUnsafe(result) ? Deferred.await(result) : change
      }),
    stop: Effect.gen(function* () {
      stopping = true
      const finished = Effect.andThen(Queue.offer(commands, { _tag: "Stop" }), Deferred.await(ended))
      const inTime = yield* Effect.timeoutOption(finished, options.drainTimeoutMs + STOP_GRACE_MS)
      if (Option.isSome(inTime)) return
      // What cannot be interrupted must not hold up the end of the program: it is told, and not waited for.
      yield* Effect.logWarning(`network ${network} does not end; it is left behind`)
      fiber.interruptUnsafe()
    }),
  }
})
