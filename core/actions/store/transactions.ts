import { type Cause, Deferred, Effect, Exit, Fiber, Queue, Schedule, type Scope } from "effect"
import { type StoreFailed, storeFailed } from "./error.ts"
import type { Session, Sessions } from "./session.ts"

const QUEUED = 1024
/** The most works of one transaction. */
const GROUP = 32

/** How long a transaction takes more works, in ms: SQLite has one writer, for whom all others wait. */
const GROUP_MS = { sqlite: 10, postgres: 50 }

/** Works that share statements with the others of their kind in a transaction. */
export interface Kind<Item> {
  readonly operation: string
  /** Is asked first: those that are not to be done, and why. What it looked at must stay so until the end. */
  readonly check: (session: Session, items: ReadonlyArray<Item>) => Promise<ReadonlyMap<Item, unknown>>
  readonly each: (session: Session, item: Item) => Promise<void>
  /** Gets those that were done; what it throws takes back all of them. */
  readonly finish: (session: Session, items: ReadonlyArray<Item>) => Promise<void>
}

/** The transactions of a store. */
export interface Transactions {
  /** Runs reading statements, each by itself. */
  readonly read: <A>(operation: string, work: (session: Session) => Promise<A>) => Effect.Effect<A, StoreFailed>
  /**
   * Runs `work` once, in the next transaction, which several works share, each in a savepoint: what one throws takes back
   * its own writes alone. Answers when it is committed.
   */
  readonly write: <A>(operation: string, work: (session: Session) => Promise<A>) => Effect.Effect<A, StoreFailed>
  /** The same, with what a kind of works has in common. */
  readonly writeOf: <Item>(kind: Kind<Item>, item: Item) => Effect.Effect<void, StoreFailed>
}

/** A work on its way into a transaction. */
interface Waiting {
  readonly operation: string
  readonly work: (session: Session) => Promise<unknown>
  /** What it shares statements with, and what it is there; null if nothing. */
  readonly kind: Kind<any> | null
  readonly item: unknown
  readonly done: Deferred.Deferred<any, StoreFailed>
  /** Its caller was interrupted: if it was not run yet, it never is. */
  abandoned: boolean
}

/** What came of a group: an exit for each of the first works, or the error that took all of them back. */
type Attempt =
  | { readonly committed: true; readonly exits: ReadonlyArray<Exit.Exit<unknown, StoreFailed>> }
  | { readonly committed: false; readonly tried: number; readonly cause: unknown }

const whileLocked = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("40 millis")]).pipe(
  Schedule.jittered,
  Schedule.upTo({ duration: "5 seconds" }),
)

/**
 * Starts the writing of a store: a fiber that commits the works that wait together. When the scope closes, what is queued
 * is written first.
 */
export const makeTransactions = Effect.fnUntraced(function* (
  store: string,
  database: "sqlite" | "postgres",
  sessions: Sessions,
): Effect.fn.Return<Transactions, never, Scope.Scope> {
  const queue = yield* Queue.bounded<Waiting, Cause.Done>(QUEUED)

  const failed = ({ operation }: Waiting, cause: unknown) => Exit.fail(storeFailed(store, operation, cause))

  const inSavepoint = async (session: Session, waiting: Waiting, name: string) => {
    try {
      // While it is on its way the work finds out what it writes: statements are run in the order of their asking.
      const [, answer] = await Promise.all([session.run(`savepoint ${name}`), waiting.work(session)])
      return Exit.succeed(answer)
    } catch (cause) {
      await session.run(`rollback to savepoint ${name}`)
      return failed(waiting, cause)
    } finally {
      // On PostgreSQL all are released at once, which saves a round trip each.
      if (database === "sqlite") await session.run(`release savepoint ${name}`)
    }
  }

  const runGroup = async (session: Session, works: ReadonlyArray<Waiting>, onTry: () => void) => {
    const until = performance.now() + GROUP_MS[database]
    const kinds = Map.groupBy(
      works.filter(({ kind, abandoned }) => kind !== null && !abandoned),
      ({ kind }) => kind!,
    )
    const refused = new Map<unknown, unknown>()
    for (const [kind, own] of kinds) {
      const items = own.map(({ item }) => item)
      for (const [item, cause] of await kind.check(session, items)) refused.set(item, cause)
    }
    const exits: Array<Exit.Exit<unknown, StoreFailed>> = []
    const done = new Set<Waiting>()
    let savepoints = 0
    for (const waiting of works) {
      onTry()
      if (waiting.abandoned) exits.push(Exit.void)
      else if (refused.has(waiting.item)) exits.push(failed(waiting, refused.get(waiting.item)))
      else {
        // The transaction is taken back with its only work.
        const alone = works.length === 1
        const exit = alone
          ? Exit.succeed(await waiting.work(session))
          : await inSavepoint(session, waiting, `work_${savepoints++}`)
        if (Exit.isSuccess(exit)) done.add(waiting)
        exits.push(exit)
      }
      if (performance.now() >= until) break
    }
    // With the first go those inside it. Else the rows that were locked before it would be changed from within it.
    if (database === "postgres" && savepoints > 0) await session.run("release savepoint work_0")
    for (const [kind, own] of kinds) {
      const items = own.filter((waiting) => done.has(waiting)).map(({ item }) => item)
      if (items.length > 0) await kind.finish(session, items)
    }
    return exits
  }

  const attempt = async (works: ReadonlyArray<Waiting>): Promise<Attempt> => {
    let tried = 0
    try {
      const exits = await sessions.transaction((session) => runGroup(session, works, () => tried++))
      return { committed: true, exits }
    } catch (cause) {
      return { committed: false, tried, cause }
    }
  }

  const settle = (waiting: Waiting, exit: Exit.Exit<unknown, StoreFailed>): void => {
    Deferred.doneUnsafe(waiting.done, exit)
  }

  /** Writes the first works of the backlog and takes them off it. */
  const writeGroup = Effect.fnUntraced(function* (backlog: Array<Waiting>) {
    const group = backlog.slice(0, GROUP)
    const outcome = yield* Effect.promise(() => attempt(group)).pipe(
      // Left half way, the transaction would stay open on its connection.
      Effect.uninterruptible,
      Effect.flatMap((done) => {
        if (done.committed || done.tried > 0) return Effect.succeed(done)
        const failed = storeFailed(store, group[0]!.operation, done.cause)
        return failed.failure === "locked" ? Effect.fail(failed) : Effect.succeed(done)
      }),
      Effect.retry(whileLocked),
      Effect.catch((cause) => Effect.succeed<Attempt>({ committed: false, tried: group.length, cause })),
    )
    if (outcome.committed) {
      for (const [i, waiting] of backlog.splice(0, outcome.exits.length).entries()) settle(waiting, outcome.exits[i]!)
      return
    }
    for (const waiting of backlog.splice(0, Math.max(outcome.tried, 1))) {
      settle(waiting, Exit.fail(storeFailed(store, waiting.operation, outcome.cause)))
    }
  })

  const backlog: Array<Waiting> = []
  const loop = Effect.gen(function* () {
    while (true) {
      if (backlog.length === 0) backlog.push(...(yield* Queue.takeAll(queue)))
      // What others are about to write joins this transaction: a commit costs far more than a turn of theirs.
      yield* Effect.yieldNow
      backlog.push(...(yield* Queue.clear(queue)))
      yield* writeGroup(backlog)
    }
  })
  const supervised: Effect.Effect<void> = loop.pipe(
    Effect.catchDefect((defect) =>
      Effect.logError(`the writing of event store ${store} broke and starts again`, defect).pipe(
        Effect.andThen(
          Effect.sync(() => {
            for (const waiting of backlog.splice(0)) {
              settle(waiting, Exit.fail(storeFailed(store, waiting.operation, defect)))
            }
          }),
        ),
        Effect.andThen(Effect.suspend(() => supervised)),
      ),
    ),
    Effect.catchTag("Done", () => Effect.void),
  )
  const fiber = yield* Effect.forkScoped(supervised)
  yield* Effect.addFinalizer(() => Queue.end(queue).pipe(Effect.andThen(Fiber.await(fiber))))

  const write = Effect.fnUntraced(function* (parts: Pick<Waiting, "operation" | "work" | "kind" | "item">) {
    const waiting: Waiting = { ...parts, done: Deferred.makeUnsafe(), abandoned: false }
    if (!(yield* Queue.offer(queue, waiting))) {
      return yield* storeFailed(store, parts.operation, new Error("the store is closed"))
    }
    return yield* Deferred.await(waiting.done).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          waiting.abandoned = true
        }),
      ),
    )
  })

  return {
    read: (operation, work) =>
      Effect.tryPromise({ try: () => work(sessions.any), catch: (cause) => storeFailed(store, operation, cause) }).pipe(
        // Left half way, a statement would be under way when the connections are closed.
        Effect.uninterruptible,
      ),
    write: (operation, work) => write({ operation, work, kind: null, item: null }),
    writeOf: (kind, item) =>
      write({ operation: kind.operation, work: (session) => kind.each(session, item), kind, item }),
  }
})
