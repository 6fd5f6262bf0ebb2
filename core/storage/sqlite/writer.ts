import { type Cause, Deferred, Effect, Exit, Fiber, Queue, Result, type Scope } from "effect"
import { NotOwner, StorageError } from "../error.ts"
import type { Owner } from "../storage.ts"
import type { Connection } from "./connection.ts"
import { classify } from "./error.ts"
import type { NetworkRow } from "../network-row.ts"
import { type Group, makeGroups } from "./group.ts"

const QUEUED = 1024
const GROUP_MS = 5

/** A write on its way to a group. */
interface Command {
  readonly operation: string
  readonly run: (group: Group) => Exit.Exit<any, NotOwner>
  readonly done: Deferred.Deferred<any, StorageError | NotOwner>
  /** Its caller was interrupted: if it was not run yet, it never is. */
  abandoned: boolean
}

/** What one attempt at a group did: an exit for each of the first commands, or the error that took it back. */
type Attempt =
  | { readonly committed: true; readonly exits: ReadonlyArray<Exit.Exit<any, NotOwner>> }
  | { readonly committed: false; readonly tried: number; readonly cause: unknown }

export interface Writer {
  /** Runs `work` in the next group and answers when it is committed. Work may be run again, so it changes rows only. */
  readonly write: <A>(operation: string, work: (group: Group) => A) => Effect.Effect<A, StorageError>
  /** The same, for the present owner of a network only. */
  readonly writeAs: <A>(
    operation: string,
    owner: Owner,
    work: (group: Group, network: NetworkRow) => A,
  ) => Effect.Effect<A, StorageError | NotOwner>
}

/**
 * Starts the one writer: a fiber that commits as many waiting commands in one transaction as fit in about 5 ms.
 * When the scope closes, what is queued is written first.
 *
 * @param onEvents is called after a commit that wrote events of actions
 */
export const makeWriter = Effect.fn("Storage.writer")(function* (
  connection: Connection,
  onEvents: () => void,
): Effect.fn.Return<Writer, never, Scope.Scope> {
  const { native } = connection
  const groups = makeGroups(native)
  const begin = native.prepare("BEGIN IMMEDIATE")
  const commit = native.prepare("COMMIT")
  const rollback = native.prepare("ROLLBACK")
  const queue = yield* Queue.bounded<Command, Cause.Done>(QUEUED)

  const attempt = (commands: ReadonlyArray<Command>): Attempt => {
    begin.run()
    const exits: Array<Exit.Exit<any, NotOwner>> = []
    const until = performance.now() + GROUP_MS
    let tried = 0
    try {
      const group = groups()
      for (const command of commands) {
        tried++
        exits.push(command.abandoned ? Exit.void : command.run(group))
        if (performance.now() >= until) break
      }
      group.flush()
      commit.run()
      if (group.wroteEvents) onEvents()
      return { committed: true, exits }
    } catch (cause) {
      if (native.inTransaction) rollback.run()
      return { committed: false, tried, cause }
    }
  }

  const settle = (command: Command, exit: Exit.Exit<any, StorageError | NotOwner>): void => {
    Deferred.doneUnsafe(command.done, exit)
  }

  /** Writes the first commands of the backlog and takes them off it. */
  const writeGroup: (backlog: Array<Command>) => Effect.Effect<void> = Effect.fnUntraced(function* (backlog) {
    const result = yield* Effect.result(connection.run(backlog[0]!.operation, () => attempt(backlog)))
    if (Result.isFailure(result)) {
      for (const command of backlog.splice(0)) settle(command, Exit.fail(result.failure))
      return
    }
    const outcome = result.success
    if (outcome.committed) {
      const written = backlog.splice(0, outcome.exits.length)
      for (let i = 0; i < written.length; i++) settle(written[i]!, outcome.exits[i]!)
      return
    }
    const tried = backlog.splice(0, outcome.tried)
    if (tried.length === 1) {
      const error = classify(tried[0]!.operation, outcome.cause)
      settle(
        tried[0]!,
        Exit.fail(
          error instanceof StorageError
            ? error
            : new StorageError({ operation: tried[0]!.operation, reason: error.reason, retryable: true }),
        ),
      )
      return
    }
    // Groups seldom fail, so they carry no savepoints; the one that broke this group is found by writing each alone.
    for (const command of tried) yield* writeGroup([command])
  })

  const backlog: Array<Command> = []
  const loop = Effect.gen(function* () {
    while (true) {
      if (backlog.length === 0) backlog.push(...(yield* Queue.takeAll(queue)))
      // What others are about to write joins this group: a commit costs far more than a turn of theirs.
      yield* Effect.yieldNow
      backlog.push(...(yield* Queue.clear(queue)))
      yield* writeGroup(backlog)
    }
  })
  const supervised: Effect.Effect<void> = loop.pipe(
    Effect.catchDefect((defect) =>
      Effect.logError("the storage writer broke and starts again", defect).pipe(
        Effect.andThen(
          Effect.sync(() => {
            for (const command of backlog.splice(0)) settle(command, Exit.fail(broken(command.operation, defect)))
          }),
        ),
        Effect.andThen(Effect.suspend(() => supervised)),
      ),
    ),
    Effect.catchTag("Done", () => Effect.void),
  )
  const fiber = yield* Effect.forkScoped(supervised)
  yield* Effect.addFinalizer(() => Queue.end(queue).pipe(Effect.andThen(Fiber.await(fiber))))

  const submit = Effect.fnUntraced(function* (operation: string, run: Command["run"]) {
    const command: Command = { operation, run, done: Deferred.makeUnsafe(), abandoned: false }
    if (!(yield* Queue.offer(queue, command))) {
      return yield* new StorageError({ operation, reason: "the storage is closed", retryable: false })
    }
    return yield* Deferred.await(command.done).pipe(
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          command.abandoned = true
        }),
      ),
    )
  })

  return {
    write: (operation, work) =>
      submit(operation, (group) => Exit.succeed(work(group))) as Effect.Effect<any, StorageError>,
    writeAs: (operation, owner, work) =>
      submit(operation, (group) => {
        const network = group.network(owner.network)
        return network === undefined || network.epoch !== owner.epoch
          ? Exit.fail(new NotOwner({ network: owner.network }))
          : Exit.succeed(work(group, network))
      }),
  }
})

const broken = (operation: string, defect: unknown): StorageError =>
  new StorageError({ operation, reason: `the writer broke: ${String(defect)}`, retryable: false })
