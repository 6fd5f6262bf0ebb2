import { Cause, Clock, Deferred, Effect, Exit, Option, Queue, type Scope, Semaphore } from "effect"
import { InterestVersions } from "../pipeline/interest-versions.ts"
import { exposeGauges, NetworkMetrics } from "../pipeline/metrics.ts"
import { untilStored } from "../pipeline/persist.ts"
import type { PipelineFault } from "../pipeline/pipeline.ts"
import type { Egress } from "../plugin/egress.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { EventTerms } from "../storage/events.ts"
import { NotOwner, type StorageError } from "../storage/error.ts"
import type { DeliveryRow, Invalidation, Owner, Storage } from "../storage/storage.ts"
import type { Catalog } from "./catalog.ts"
import { watchDebts } from "./debts.ts"
import { emitOwed } from "./emit-owed.ts"
import { Conflict } from "./error.ts"
import type { FeedHub } from "./feed/hub.ts"
import { describeHolder } from "../storage/holder.ts"
import { type Ending, type NetworkActivity, NetworkCondition } from "./network-condition.ts"
import { claimNetwork, type Ownership, releaseNetwork } from "./ownership.ts"
import { makeMakingWay } from "./making-way.ts"
import { messageOf } from "./message-of.ts"
import { runPipeline } from "./pipeline-run.ts"
import { readinessOf } from "./readiness.ts"
import { makeReplays, type Replays } from "./replays/replays.ts"
import type { SinkRegistry } from "./sink-registry.ts"
import type { Command } from "./supervisor-command.ts"
import { makeRetractions, type RetractionsOf } from "./retractions.ts"
import type { Sending } from "./sending.ts"
import { makeTakingBack, takingBackTo } from "./taking-back.ts"

/** What may be done to the rows of a network for as long as this process owns it. */
export interface Tenure {
  readonly owner: Owner
  readonly replays: Replays
  /** Makes rows owed, and hands them to the pipeline if there is one; without one they are read anew. */
  readonly offer: <E>(
    write: Effect.Effect<ReadonlyArray<DeliveryRow>, E>,
  ) => Effect.Effect<ReadonlyArray<DeliveryRow>, E>
}

/** Runs one network for as long as this process owns it: its pipeline while it can, and what is to be taken back. */
export interface Supervisor {
  readonly activity: () => NetworkActivity
  /** Who runs the network instead of this process, in words. */
  readonly heldBy: () => string | null
  /** Looks again at definitions, monitors and sinks, and brings what runs in line with them. */
  readonly refresh: Effect.Effect<void>
  /** Closes the pipeline, runs a change of its rows, and builds it again from what is there then. */
  readonly between: <A, E>(change: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Runs a change that lets monitors begin anew, while nothing records where they took effect. */
  readonly beginAnew: <A, E>(change: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Stores whether the network rests, and queues it. */
  readonly pause: (paused: boolean) => Effect.Effect<void, Conflict | NotOwner | StorageError>
  /** Records an invalidation, and queues it. */
  readonly takeBack: (
    what: Pick<Invalidation, "from" | "cause">,
  ) => Effect.Effect<void, Conflict | NotOwner | StorageError>
  /** No replay is begun here any more: the process is about to stop. */
  readonly endReplays: Effect.Effect<void>
  /** Fails while this process does not own the network, or not yet. */
  readonly tenure: Effect.Effect<Tenure, Conflict | NotOwner>
  /**
   * Drains and ends; succeeds when nothing of the network runs any more and its lease is given back. `finish` carries
   * out first what is being taken back, however long the sinks take. Answers whether that is done: a fault, another owner
   * or a stop of the program may come first.
   */
  readonly stop: (ending: Ending) => Effect.Effect<boolean>
}

/** Waits before a pipeline that broke is built again, in ms: doubling from the first to the last. */
const REBUILD_MS = { first: 500, last: 30_000 }

/** How much longer than the drain a stop may take before what still runs is interrupted, in ms. */
const STOP_GRACE_MS = 3_000

/** A run of this length, in ms, shows that what broke had mended: the waits start anew. */
const HEALTHY_MS = 60_000

/** How often a network that another process runs is looked at, in ms. */
const STANDBY_MS = 1_000

const isFenced = (cause: Cause.Cause<PipelineFault>): boolean => {
  const failure = Cause.findErrorOption(cause)
  return Option.isSome(failure) && failure.value._tag === "NotOwner"
}

export const makeSupervisor = Effect.fnUntraced(function* (options: {
  readonly network: string
  readonly holder: string
  readonly catalog: Catalog
  readonly sinks: SinkRegistry
  readonly plugins: Plugins["Service"]
  readonly storage: Storage["Service"]
  readonly hub: FeedHub["Service"]
  /** What makes events for the program's actions; undefined if it has none. */
  readonly events?: EventTerms
  readonly drainTimeoutMs: number
  readonly journalDepth: () => number
  /** Brings what this process knows of the network's monitors in line with what another owner recorded. */
  readonly onClaimed: Effect.Effect<void, StorageError>
  /** Is told that a sink's receiver is gone. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
  /** Housekeeping beside the pipeline; runs until interrupted. */
  readonly maintain: (owner: Owner) => Effect.Effect<void>
}): Effect.fn.Return<Supervisor, never, Scope.Scope | Egress | Secrets> {
  const { network, catalog, sinks, storage, hub } = options
  const commands = yield* Queue.bounded<Command>(64)
  const interests = new InterestVersions()
  const condition = new NetworkCondition()
  const clock = yield* Clock.Clock
  const metrics = new NetworkMetrics(network, yield* Effect.context<never>())
  yield* exposeGauges(network, () => ({
    checkpoint: condition.checkpoint?.cursor.primary ?? null,
    head: condition.status.head?.primary ?? null,
    inFlight: condition.pipeline?.inFlight() ?? 0,
    waiting: condition.status.waitMs(clock.currentTimeMillisUnsafe()) / 1_000,
  }))
  let published: ReadonlyArray<unknown> = []
  let present: Tenure | null = null
  let replaysEnded = false
  const opening = yield* Semaphore.make(1)
  /** What is to run once no pipeline does: kept here, so that a pipeline that breaks on the way does not lose it. */
  let change: Effect.Effect<void> | null = null
  let refreshing = false
  /** Rows were made owed while there was no pipeline to hand them to. */
  let offered = false
  /** All that was taken back is told, as `finish` asks for. */
  let finished = false
  /** Counts changes of the pause: a row that was read before one says nothing of it. */
  let pauses = 0

  const publishInterests = () => {
    const active = catalog
      .enabledMonitorsOf(network)
      .flatMap((entry) => (entry.active._tag === "Success" ? [entry.active.success] : []))
    if (active.length === published.length && active.every((monitor, i) => monitor === published[i])) return
    published = active
    interests.replace(active)
  }

  const refresh = Effect.suspend(() => {
    // Published at once: what is fetched after a mutation answered is matched by the monitors as they are now.
    publishInterests()
    if (refreshing) return Effect.void
    refreshing = true
    return Effect.asVoid(Queue.offer(commands, { _tag: "Refresh" }))
  })

  const runChange = Effect.suspend(() => {
    const waiting = change ?? Effect.void
    change = null
    return Effect.uninterruptible(waiting)
  })

  /** Takes up what stands in the network's row. */
  const readRow = Effect.gen(function* () {
    const before = pauses
    const stored = yield* storage.pipeline(network).pipe(untilStored(condition.status))
    if (stored === null) return
    if (pauses === before) condition.paused = stored.paused
    // What an earlier owner showed is read before any checkpoint of this one covers it.
    yield* hub.shown(network, stored.feedPosition)
    if (stored.checkpoint === null) return
    condition.checkpoint = { network, cursor: stored.checkpoint, updatedAt: stored.checkpointAt }
    yield* hub.checkpoint(condition.checkpoint)
  })

  /** Carries out what came while there was no pipeline; what the rest asked for stands in rows and conditions. */
  const settleWaiting = Effect.gen(function* () {
    while (Queue.sizeUnsafe(commands) > 0) {
      yield* Effect.uninterruptible(
        Effect.gen(function* () {
          const command = yield* Queue.take(commands)
          if (command._tag === "Refresh") refreshing = false
          if (command._tag === "Between") {
            if (present !== null) yield* present.replays.rest(0)
            yield* command.change
          }
        }),
      )
    }
  })

  /** Claims the network, or stands by until it can; null when it was told to stop. What is to be finished needs it, too. */
  const own: Effect.Effect<Ownership | null, StorageError> = Effect.gen(function* () {
    while (condition.ending !== "leave") {
      const claimed = yield* claimNetwork(storage, network, options.holder, sinks.longestAttemptMs()).pipe(
        untilStored(condition.status),
        Effect.catchTag("Held", (held) => Effect.succeed(held)),
      )
      if ("owner" in claimed) {
        if (condition.heldBy !== null) yield* Effect.logInfo("the network is taken over")
        condition.heldBy = null
        return claimed
      }
      const holder = describeHolder(claimed.holder)
      if (condition.heldBy !== holder) yield* Effect.logInfo(`the network is run by ${holder}; this process stands by`)
      condition.heldBy = holder
      condition.status.head = null
      yield* readRow
      if (condition.ending !== null) return null
      yield* Effect.timeoutOption(Queue.peek(commands), STANDBY_MS)
      yield* settleWaiting
    }
    return null
  })

  const makingWay = makeMakingWay({
    commands,
    condition,
    drainTimeoutMs: options.drainTimeoutMs,
    onRefresh: () => {
      refreshing = false
    },
  })

  const sendingOf = (owned: Ownership): Sending => ({
    network,
    ownership: owned,
    storage,
    status: condition.status,
    metrics,
    ...(options.events === undefined ? {} : { events: options.events }),
    sinkHandle: sinks.handle,
    onGone: options.onGone,
  })

  const takeBack = Effect.fnUntraced(function* (owned: Ownership, invalidation: Invalidation) {
    condition.takingBack = takingBackTo(invalidation.from)
    yield* Effect.logInfo(`${condition.takingBack}: ${invalidation.cause}`)
    const taking = makeTakingBack({
      ...sendingOf(owned),
      journalDepth: options.journalDepth(),
      invalidation,
      onShown: (position) => hub.shown(network, position),
    })
    const rewound = yield* makingWay(taking.run, taking.leave, () => false)
    if (rewound !== null) yield* options.onClaimed.pipe(untilStored(condition.status))
  })

  /** Sends retractions while no pipeline runs, until all are sent or something else is to be done. */
  const sendRetractions = (owned: Ownership, of: RetractionsOf, isOver: () => boolean) => {
    const { send, leave } = makeRetractions(sendingOf(owned), of)
    return Effect.map(makingWay(send, leave, isOver), (done) => done === true)
  }

  /** Looks at the rows and does what follows from them; answers whether there is more to do. */
  const step = Effect.fnUntraced(function* (
    owned: Ownership,
    replays: Replays,
  ): Effect.fn.Return<boolean, PipelineFault, Scope.Scope | Egress | Secrets> {
    condition.takingBack = null
    yield* settleWaiting
    if (condition.ending === "leave") return false
    yield* readRow
    const invalidation = yield* storage.invalidation(network).pipe(untilStored(condition.status))
    if (invalidation !== null) {
      // A replay that is under way could be heard behind the retraction of its match.
      yield* replays.rest(options.drainTimeoutMs)
      yield* takeBack(owned, invalidation)
      return true
    }
    if (condition.ending !== null) {
      // Its rows go with it: who heard of what was taken back must hear of that first.
      yield* replays.rest(options.drainTimeoutMs)
      finished = yield* sendRetractions(owned, "deletion", () => false)
      return !finished
    }
    replays.resume()
    if (condition.paused) {
      condition.status.head = null
      offered = false
      yield* sendRetractions(owned, "rest", () => condition.ending !== null || !condition.paused || offered)
      return true
    }
    condition.status.begin()
    yield* runPipeline({
      ...options,
      ownership: owned,
      condition,
      metrics,
      commands,
      interests,
      replays,
      opening: opening.withPermits(1),
      publishInterests: () => {
        refreshing = false
        publishInterests()
      },
      keepChange: (waiting) => {
        change = waiting
      },
    })
    return true
  })

  const live = Effect.fnUntraced(function* (owned: Ownership, replays: Replays) {
    while (yield* Effect.scoped(step(owned, replays))) yield* runChange
    yield* replays.rest(options.drainTimeoutMs)
  })

  /** Whoever sends without a pipeline has read its rows. */
  const tellOfOffer = Effect.suspend(() => {
    if (condition.pipeline !== null) return Effect.void
    offered = true
    return refresh
  })

  const offer: Tenure["offer"] = (write) =>
    // No pipeline is opened in between, which would find some of them, or none.
    Effect.uninterruptible(
      opening
        .withPermits(1)(Effect.tap(write, (rows) => condition.pipeline?.handOver(rows) ?? Effect.void))
        .pipe(Effect.tap(tellOfOffer)),
    )

  /** Owns the network until it is told to stop. */
  const tenure = Effect.gen(function* () {
    const owned = yield* own
    if (owned === null) return
    const replays = yield* makeReplays(sendingOf(owned))
    if (replaysEnded) replays.end()
    present = { owner: owned.owner, replays, offer }
    yield* options.onClaimed.pipe(untilStored(condition.status))
    if (options.events !== undefined) yield* emitOwed(storage, owned.owner, options.events, condition.status)
    yield* Effect.forkScoped(options.maintain(owned.owner))
    yield* Effect.forkScoped(
      watchDebts(storage, network, (debts) => {
        condition.debts = debts
      }),
    )
    yield* Effect.raceFirst(live(owned, replays), owned.lease.keep(storage, owned.owner, condition.status))
    yield* releaseNetwork(storage, owned.owner)
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        present = null
      }),
    ),
    Effect.scoped,
  )

  const loop = Effect.gen(function* () {
    let faults = 0
    while (true) {
      const startedAt = yield* Clock.currentTimeMillis
      const exit = yield* Effect.exit(tenure)
      yield* runChange
      if (Exit.isSuccess(exit)) return
      condition.takingBack = null
      condition.fault = messageOf(exit.cause)
      if (condition.ending !== null)
        return yield* Effect.logError("the pipeline broke while it was stopped", exit.cause)
      if (isFenced(exit.cause)) {
        yield* Effect.logWarning("another process took the network over; this one stands by")
      } else {
        metrics.count("faults", 1)
        yield* Effect.logError("the pipeline broke; it is built again from its rows", exit.cause)
        if ((yield* Clock.currentTimeMillis) - startedAt > HEALTHY_MS) faults = 0
        const wait = Math.min(REBUILD_MS.last, REBUILD_MS.first * 2 ** Math.min(faults++, 10))
        yield* Effect.timeoutOption(Queue.peek(commands), wait)
      }
      condition.fault = null
    }
  })
  const ended = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkScoped(
    loop.pipe(Effect.ensuring(Deferred.succeed(ended, undefined)), Effect.annotateLogs({ network })),
  )

  const presentTenure = Effect.suspend((): Effect.Effect<Tenure, Conflict | NotOwner> => {
    if (present !== null) return Effect.succeed(present)
    if (condition.heldBy !== null) return Effect.fail(new NotOwner({ network, holder: condition.heldBy }))
    const why = condition.fault ?? condition.status.trouble(clock.currentTimeMillisUnsafe()) ?? "it is starting"
    return Effect.fail(new Conflict({ reason: `network "${network}" does not run yet: ${why}; try again` }))
  })

  return {
    activity: () => condition.activity(readinessOf(catalog, sinks, network), clock.currentTimeMillisUnsafe()),
    heldBy: () => condition.heldBy,
    refresh,
    between: <A, E>(change: Effect.Effect<A, E>) =>
      Effect.gen(function* () {
        const result = yield* Deferred.make<A, E>()
        yield* Queue.offer(commands, { _tag: "Between", change: Effect.asVoid(Deferred.complete(result, change)) })
        yield* Effect.raceFirst(Effect.exit(Deferred.await(result)), Deferred.await(ended))
        // After the last run there is no pipeline that the change could disturb.
        return yield* Deferred.isDoneUnsafe(result) ? Deferred.await(result) : change
      }),
    beginAnew: (change) => interests.recording(change),
    // What is stored is also acted on, whoever asked for it may be gone by then.
    pause: (paused) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          yield* storage.pause((yield* presentTenure).owner, paused)
          pauses++
          condition.paused = paused
          yield* refresh
        }),
      ),
    takeBack: (what) =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          const told = Queue.offer(commands, { _tag: "TakeBack", from: what.from })
          yield* Effect.ensuring(storage.invalidate((yield* presentTenure).owner, what), told)
        }),
      ),
    endReplays: Effect.sync(() => {
      replaysEnded = true
      present?.replays.end()
    }),
    tenure: presentTenure,
    stop: Effect.fnUntraced(function* (ending: Ending) {
      // A stop of the program goes before a deletion, whichever came first.
      if (condition.ending !== "leave") condition.ending = ending
      present?.replays.end()
      const end = Effect.andThen(Queue.offer(commands, { _tag: "Stop" }), Deferred.await(ended))
      if (ending === "finish") {
        yield* end
        return finished
      }
      const inTime = yield* Effect.timeoutOption(end, options.drainTimeoutMs + STOP_GRACE_MS)
      if (Option.isSome(inTime)) return finished
      // What cannot be interrupted must not hold up the end of the program: it is told, and not waited for.
      yield* Effect.logWarning(`network ${network} does not end; it is left behind`)
      fiber.interruptUnsafe()
      return false
    }),
  }
})
