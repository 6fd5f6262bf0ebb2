import { Cause, Effect, Exit, Queue, type Scope } from "effect"
import { type Cursor, formatCursor } from "../model/cursor.ts"
import type { CompiledMonitor } from "../pipeline/matcher.ts"
import type { InterestVersions } from "../pipeline/interest-versions.ts"
import { beforeAll } from "../pipeline/draining.ts"
import type { NetworkMetrics } from "../pipeline/metrics.ts"
import { untilStored } from "../pipeline/persist.ts"
import { makePipeline, type Pipeline, type PipelineFault } from "../pipeline/pipeline.ts"
import type { Egress } from "../plugin/egress.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { SourceOutcome } from "../plugin/source.ts"
import type { EventTerms } from "../storage/events.ts"
import type { Storage } from "../storage/storage.ts"
import type { Catalog, MonitorEntry } from "./catalog.ts"
import type { FeedHub } from "./feed/hub.ts"
import type { NetworkCondition } from "./network-condition.ts"
import type { Ownership } from "./ownership.ts"
import { messageOf } from "./message-of.ts"
import type { Replays } from "./replays/replays.ts"
import { readinessOf } from "./readiness.ts"
import type { SinkRegistry } from "./sink-registry.ts"
import { runSource } from "./source-runner.ts"
import { makeSourceSlot, type SourceExit } from "./source-slot.ts"
import type { Command } from "./supervisor-command.ts"
import { takingBackTo } from "./taking-back.ts"

export interface PipelineRunOptions {
  readonly network: string
  readonly catalog: Catalog
  readonly sinks: SinkRegistry
  readonly plugins: Plugins["Service"]
  readonly storage: Storage["Service"]
  readonly hub: FeedHub["Service"]
  readonly events?: EventTerms
  readonly drainTimeoutMs: number
  readonly journalDepth: () => number
  readonly ownership: Ownership
  readonly condition: NetworkCondition
  readonly metrics: NetworkMetrics
  readonly commands: Queue.Queue<Command>
  readonly interests: InterestVersions
  readonly publishInterests: () => void
  /** Builds the pipeline while nothing is made owed that it would have to be handed. */
  readonly opening: <A, E, R>(open: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Lets replays rest, for as long as what the pipeline is drained for takes. */
  readonly replays: Pick<Replays, "leave" | "rest">
  /** Is told that a sink's receiver is gone. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
  /** Keeps the change that is to run once no pipeline does. */
  readonly keepChange: (change: Effect.Effect<void>) => void
}

type Invalidated = SourceOutcome & { readonly _tag: "Invalidated" }

/** Runs a network's pipeline, and its source while it can, until a command ends it. Closing the scope closes both. */
export const runPipeline = Effect.fnUntraced(function* (
  options: PipelineRunOptions,
): Effect.fn.Return<void, PipelineFault, Scope.Scope | Egress | Secrets> {
  const { condition } = options
  const opened = yield* options.opening(
    Effect.tap(openPipeline(options), (pipeline) =>
      Effect.sync(() => {
        condition.pipeline = pipeline
      }),
    ),
  )
  return yield* Effect.raceFirst(work(options, opened), opened.fault).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        condition.pipeline = null
        condition.phase = "working"
      }),
    ),
  )
})

const openPipeline = ({
  network,
  catalog,
  sinks,
  storage,
  hub,
  events,
  ownership,
  condition,
  metrics,
  interests,
  onGone,
}: PipelineRunOptions) => {
  /** The entry that holds this very compilation: none for a monitor that is gone or was edited since. */
  const presentEntry = (monitor: CompiledMonitor): MonitorEntry | undefined => {
    const entry = catalog.monitors.get(monitor.id)
    return entry?.active._tag === "Success" && entry.active.success.compiled === monitor ? entry : undefined
  }
  return makePipeline({
    ...ownership,
    metrics,
    storage,
    ...(events === undefined ? {} : { events }),
    status: condition.status,
    interests,
    sinksOf: (monitor) => catalog.sinksOf(network, monitor),
    sinkHandle: sinks.handle,
    onGone,
    isEffective: (monitor) => presentEntry(monitor)?.effectiveFrom !== null,
    effectiveFrom: (monitor) => presentEntry(monitor)?.effectiveFrom ?? null,
    onEffective: (monitor, from) => {
      const entry = presentEntry(monitor)
      if (entry === undefined) return
      entry.effectiveFrom = from
      entry.waitsFor = null
    },
    onWaiting: (monitor, reason) => {
      const entry = presentEntry(monitor)
      if (entry !== undefined) entry.waitsFor = reason
    },
    onPredicateFailure: (monitor, reason) => {
      const entry = catalog.monitors.get(monitor)
      if (entry !== undefined) entry.error = reason
    },
    onShown: (position) => hub.shown(network, position),
    onCheckpoint: (cursor: Cursor, at: number) => {
      const checkpoint = { network, cursor, updatedAt: at }
      condition.checkpoint = checkpoint
      return hub.checkpoint(checkpoint)
    },
  })
}

/** Works until it is told to stop, or until the rows have to be looked at again while there is no pipeline. */
const work = Effect.fnUntraced(function* (
  options: PipelineRunOptions,
  running: Pipeline,
): Effect.fn.Return<void, PipelineFault, Scope.Scope | Egress | Secrets> {
  const { network, catalog, sinks, storage, condition, commands, interests } = options
  const { status } = condition
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
          journalDepth: options.journalDepth(),
        }),
      ),
    ),
    (exit, run) => Effect.asVoid(Queue.offer(commands, { _tag: "SourceEnded", exit, run })),
  )

  const rest = Effect.suspend(() => {
    revision = null
    condition.phase = "working"
    status.reading = false
    status.source = null
    // Nobody looks any more: what was seen last says nothing of the lag.
    status.head = null
    return source.stop
  })

  const fail = (reason: string) => {
    const known = condition.failure === reason
    condition.failure = reason
    status.head = null
    return known ? Effect.void : Effect.logError(`the network is FAILED: ${reason}`)
  }

  /** Says once which sinks the network goes on without. */
  const tellWithout = (without: string) => {
    const known = condition.without === without
    condition.without = without
    return known || without === "" ? Effect.void : Effect.logWarning(`the network does not wait: ${without}`)
  }

  const refresh = Effect.fnUntraced(function* () {
    options.publishInterests()
    const readiness = readinessOf(catalog, sinks, network)
    if (readiness._tag === "Broken") {
      yield* rest
      return yield* fail(readiness.reason)
    }
    const failed = condition.failure !== null
    condition.failure = null
    const present = catalog.networks.get(network)?.revision ?? null
    // A feed whose start was resolved goes on without monitors: it is simply quiet.
    const begun = running.minted() !== null
    if (readiness._tag === "Waiting" && !(readiness.idle && begun)) return yield* rest
    yield* tellWithout(readiness._tag === "Ready" ? readiness.without.join("; ") : "")
    if (revision === present && !failed) return
    revision = present
    condition.phase = "working"
    yield* source.start
  })

  const onSourceEnded = Effect.fnUntraced(function* (exit: Exclude<SourceExit, Exit.Success<Invalidated>>) {
    if (Exit.isSuccess(exit)) {
      condition.phase = "completed"
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

  const drain = Effect.fnUntraced(function* (deadlineMs: number, leaveAfter: Cursor | null) {
    condition.phase = "draining"
    yield* source.stop
    return yield* running.drain({ deadlineMs, leaveAfter })
  })

  /** Drains the pipeline, and lets replays rest within the same time. */
  const close = (deadlineMs: number, leaveAfter: Cursor | null) =>
    Effect.suspend(() => {
      options.replays.leave()
      return Effect.all([drain(deadlineMs, leaveAfter), options.replays.rest(deadlineMs)], { concurrency: 2 })
    }).pipe(Effect.map(([drained]) => drained))

  const invalidatedBy = (command: Command): Invalidated | undefined =>
    command._tag === "SourceEnded" &&
    source.isPresent(command.run) &&
    Exit.isSuccess(command.exit) &&
    command.exit.value._tag === "Invalidated"
      ? command.exit.value
      : undefined

  const record = ({ from, cause }: Invalidated) =>
    Effect.logWarning(`the chain took back everything behind ${formatCursor(from)}: ${cause}`).pipe(
      Effect.andThen(storage.invalidate(options.ownership.owner, { from, cause }).pipe(untilStored(status))),
    )

  const stop = Effect.gen(function* () {
    let leaveAfter: Cursor | null = null
    if (condition.ending === "finish") {
      // What the source found before it was told to end is known here alone: the network is not there to find it again.
      for (const command of yield* Queue.clear(commands)) {
        const invalidated = invalidatedBy(command)
        if (invalidated === undefined) continue
        leaveAfter = invalidated.from
        yield* record(invalidated)
      }
    }
    if (yield* close(options.drainTimeoutMs, leaveAfter)) return
    yield* Effect.logWarning(
      `not everything was delivered within ${options.drainTimeoutMs} ms; the rest is sent at the next start`,
    )
  })

  yield* refresh()
  while (true) {
    yield* Queue.peek(commands)
    // In one step with what must not be lost with it, should the pipeline break right then.
    const command = yield* Effect.uninterruptible(
      Effect.tap(Queue.take(commands), (taken) =>
        Effect.sync(() => {
          if (taken._tag === "Between") options.keepChange(taken.change)
          if (taken._tag === "Refresh") options.publishInterests()
        }),
      ),
    )
    switch (command._tag) {
      case "Stop": {
        yield* stop
        return
      }
      case "Between": {
        yield* close(0, null)
        return
      }
      case "TakeBack": {
        condition.takingBack = takingBackTo(command.from)
        yield* close(options.drainTimeoutMs, command.from)
        return
      }
      case "Refresh": {
        if (condition.paused) {
          yield* drain(options.drainTimeoutMs, beforeAll)
          return
        }
        yield* refresh()
        break
      }
      case "SourceEnded": {
        const invalidated = invalidatedBy(command)
        if (invalidated !== undefined) {
          yield* record(invalidated)
          condition.takingBack = takingBackTo(invalidated.from)
          yield* close(options.drainTimeoutMs, invalidated.from)
          return
        }
        if (source.isPresent(command.run)) yield* onSourceEnded(command.exit)
      }
    }
  }
})
