import { Clock, Effect, Fiber, FiberSet, Latch, Scope } from "effect"
import { persistently } from "../../pipeline/persistently.ts"
import type { Claim } from "../store/claim.ts"
import type { StoreFailed } from "../store/error.ts"
import type { Store } from "../store/store.ts"
import { readBacklog } from "../store/views.ts"
import { claimJobs } from "./claims.ts"
import { type Backlog, exposeBacklog } from "./metrics.ts"
import { type InRunner, processJob, type Running } from "./process.ts"
import type { Job } from "./job.ts"
import { makeSweep } from "./sweep.ts"
import { giveBackLeft, tryUnreadableAgain } from "./upkeep.ts"

export interface RunnerOptions extends Running {
  /** Where events stand. */
  readonly stores: ReadonlyArray<Store>
  /** Names this process, apart from any other. */
  readonly holder: string
  /** How many deliveries run at once; as many more may be held whose runs are over and that are being committed. */
  readonly concurrency: number
  /** How long a stop lets runs go on, in ms. */
  readonly drainTimeoutMs: number
  /** How long events are kept whose deliveries are all over, in ms. */
  readonly retentionMs: number
}

export interface Runner {
  /** Looks for deliveries at once. */
  readonly wake: Effect.Effect<void>
}

/** How long the runner rests when there was nothing to do: others may commit what it is not told of. */
const IDLE_MS = { least: 250, most: 1_000 }

/** How long the runner waits for more room while most of it is taken, in ms: runs may take minutes. */
const GATHER_MS = 50

const UPKEEP_EVERY = "1 second"
const UNREADABLE_EVERY = "1 minute"
const BACKLOG_EVERY = "2 seconds"
const SWEEP_EVERY = "10 seconds"

/** How long what is still held after the drain may take to be given back, in ms. */
const CLOSE_MS = 2_000

/**
 * Runs the deliveries of all stores, until the scope closes: then those that run have the drain time to end, and what is
 * still held is given back.
 */
export const startRunner = Effect.fnUntraced(function* (
  options: RunnerOptions,
): Effect.fn.Return<Runner, never, Scope.Scope> {
  const { stores, written, registry, holder, concurrency } = options
  const limits: Claim["limits"] = new Map([...registry.actions].map(([name, { timeoutMs }]) => [name, timeoutMs]))
  const own = yield* Scope.make()
  const runs = yield* FiberSet.make<void>().pipe(Scope.provide(own))
  const wanted = Latch.makeUnsafe(true)
  const wake = Effect.sync(() => void wanted.openUnsafe())

  /** Deliveries that are held, and those of them that take a place: a run that waits for its commit takes none. */
  const taken = { held: 0, places: 0 }
  // One at a time is what was asked for then.
  const most = concurrency === 1 ? 1 : 2 * concurrency
  const room = (): number => Math.min(concurrency - taken.places, most - taken.held)
  const process = (job: Job): Effect.Effect<void> => {
    taken.held++
    taken.places++
    const over = Effect.sync(() => {
      taken.held--
      taken.places--
      wanted.openUnsafe()
    })
    return Effect.ensuring(processJob(job, inRunner), over)
  }
  const inRunner: InRunner = {
    ...options,
    givingPlace: (commit) =>
      Effect.suspend(() => {
        taken.places--
        wanted.openUnsafe()
        return Effect.ensuring(
          commit,
          Effect.sync(() => void taken.places++),
        )
      }),
  }

  /** Claims what there is room for; answers whether there was any. */
  const claimAll = Effect.gen(function* () {
    let any = false
    for (const store of stores) {
      const limit = room()
      if (limit <= 0) break
      const jobs = yield* Effect.uninterruptible(
        Effect.gen(function* () {
          const claimed = yield* claimJobs(store, written, { holder, limits, limit })
          for (const job of claimed) {
            yield* options.changed(job, "running", null)
            yield* FiberSet.run(runs, process(job))
          }
          return claimed
        }),
      )
      any ||= jobs.length > 0
    }
    return any
  })

  /** A claim costs as much for one as for many. */
  const untilHalfFree: Effect.Effect<void> = Effect.suspend(() => {
    if (2 * room() >= concurrency) return Effect.void
    wanted.closeUnsafe()
    return Effect.andThen(wanted.await, untilHalfFree)
  })

  let idle = IDLE_MS.least
  const work = Effect.gen(function* () {
    wanted.closeUnsafe()
    // Those that end together make room together.
    yield* Effect.yieldNow
    yield* Effect.timeoutOption(untilHalfFree, GATHER_MS)
    const any = yield* claimAll
    idle = any ? IDLE_MS.least : Math.min(idle * 2, IDLE_MS.most)
    if (any && room() > 0) return
    yield* Effect.timeoutOption(wanted.await, idle)
  })

  const forAll = (each: (store: Store) => Effect.Effect<boolean, StoreFailed>) =>
    Effect.flatMap(Effect.forEach(stores, each), (any) => (any.includes(true) ? wake : Effect.void))

  let backlog: Backlog = { waiting: 0, oldestSeconds: 0 }
  yield* exposeBacklog(() => backlog)
  const lookAtBacklog = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const all = yield* Effect.forEach(stores, (store) =>
      store.read("read what waits", (session) => readBacklog(session)),
    )
    const since = Math.min(...all.map(({ oldest }) => oldest ?? now))
    const waiting = all.reduce((sum, { waiting: own }) => sum + own, 0)
    backlog = { waiting, oldestSeconds: Math.max(0, now - since) / 1000 }
  })

  const loops = yield* Effect.forkScoped(
    Effect.all(
      [
        persistently("run actions")(work),
        persistently("give deliveries of ended runners back")(
          Effect.andThen(forAll(giveBackLeft), Effect.sleep(UPKEEP_EVERY)),
        ),
        persistently("try unreadable payloads again")(
          Effect.andThen(
            forAll((store) => tryUnreadableAgain(store, registry)),
            Effect.sleep(UNREADABLE_EVERY),
          ),
        ),
        ...stores.map((store) => {
          const sweep = makeSweep(store, written, options.retentionMs)
          return persistently("remove events that are over")(Effect.andThen(sweep, Effect.sleep(SWEEP_EVERY)))
        }),
        persistently("look at what waits for actions")(Effect.andThen(lookAtBacklog, Effect.sleep(BACKLOG_EVERY))),
      ],
      { concurrency: "unbounded", discard: true },
    ),
  )
  yield* Effect.addFinalizer((exit) =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(loops)
      yield* Effect.timeoutOption(FiberSet.awaitEmpty(runs), options.drainTimeoutMs)
      // Detached, so that what cannot be interrupted does not hold up the end of the program.
      const closing = yield* Effect.forkDetach(Scope.close(own, exit))
      yield* Effect.timeoutOption(Fiber.await(closing), CLOSE_MS)
    }),
  )
  return { wake }
})
