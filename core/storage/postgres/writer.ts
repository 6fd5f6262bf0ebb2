import { Deferred, Effect, Exit, FiberSet, Result, Schema, type Scope, Semaphore } from "effect"
import { type Held, NotOwner, StorageError } from "../error.ts"
import type { Owner } from "../storage.ts"
import type { Connection, Session } from "./connection.ts"
import { classify, isConflict, QueryFailed } from "./error.ts"
import { beginGroup, commitGroup, type Group } from "./group.ts"
import type { Numbers } from "./numbers.ts"

const QUEUED = 1024
const GROUP_MS = 20
/** How many networks are written to at the same time. */
const WRITING = 6
const CONFLICTS = 5

type Refused = NotOwner | Held
type Work<A> = (group: Group) => Effect.Effect<A, QueryFailed>

/** A write on its way to a group. */
interface Command {
  readonly operation: string
  /** Makes the network's row if there is none. */
  readonly makes: boolean
  /** Whether the caller may simply repeat it when it is not known whether it was stored. */
  readonly repeatable: boolean
  readonly run: (group: Group | undefined) => Effect.Effect<Exit.Exit<any, Refused>, QueryFailed>
  readonly done: Deferred.Deferred<any, StorageError | Refused>
  /** It is part of a transaction that may be committed. */
  begun: boolean
  /** Its caller was interrupted: if it was not run yet, it never is. */
  abandoned: boolean
}

/** A group failed before or while it did something. */
class GroupFailed extends Schema.TaggedError<GroupFailed>()("GroupFailed", {
  while: Schema.Literals(["connecting", "locking", "writing", "committing"]),
  /** How many of the first commands had a part in it. */
  tried: Schema.Int,
  cause: QueryFailed,
}) {}

/** Says what a step that fails was a part of. */
const failing =
  (during: GroupFailed["while"], tried: number) =>
  <A, R>(step: Effect.Effect<A, QueryFailed, R>): Effect.Effect<A, GroupFailed, R> =>
    Effect.mapError(step, (cause) => new GroupFailed({ while: during, tried, cause }))

export interface Writer {
  /** Runs `work` for the present owner of a network in its next group, and answers when that is committed. */
  readonly writeAs: <A>(
    operation: string,
    owner: Owner,
    work: Work<A>,
    options?: { readonly repeatable: boolean },
  ) => Effect.Effect<A, StorageError | NotOwner>
  /** Runs `work` on a network's row whoever owns it; the row is made if there is none. */
  readonly write: <A, E extends Refused>(
    operation: string,
    network: string,
    work: Work<Exit.Exit<A, E>>,
  ) => Effect.Effect<A, StorageError | E>
}

/**
 * Starts the writing: the commands that wait for a network are committed together, in a transaction of about 20 ms that
 * holds the network's row. Networks do not wait for one another, nor for another process that holds the row of one.
 * When the scope closes, what is queued is written first.
 *
 * @param onEvents is called after a commit that wrote events of actions
 * @param grew is told each network whose feed grew by a commit, and its newest position
 */
export const makeWriter = Effect.fn("Storage.writer")(function* (
  connection: Connection,
  numbers: Numbers,
  grew: (feed: { readonly network: string; readonly position: number }) => void,
  onEvents: () => void,
): Effect.fn.Return<Writer, never, Scope.Scope> {
  const lanes = new Map<string, Array<Command>>()
  const running = yield* FiberSet.make<void>()
  const queued = Semaphore.makeUnsafe(QUEUED)
  const turns = Semaphore.makeUnsafe(WRITING)
  let closed = false

  const settle = (command: Command, exit: Exit.Exit<any, StorageError | Refused>): void => {
    Deferred.doneUnsafe(command.done, exit)
  }

  const attempt = Effect.fnUntraced(function* (network: string, commands: ReadonlyArray<Command>, session: Session) {
    const make = commands.some(({ makes }) => makes)
    const group = yield* beginGroup(session, numbers, network, make).pipe(failing("locking", commands.length))
    const before = group?.network.feedPosition
    const exits: Array<Exit.Exit<any, Refused>> = []
    const until = performance.now() + GROUP_MS
    // Those that came meanwhile join, but for one that needs a row where none was to be made.
    for (const command of commands) {
      if (command.makes && group === undefined) break
      if (command.abandoned && !command.begun) {
        exits.push(Exit.void)
      } else {
        command.begun = true
        exits.push(yield* command.run(group).pipe(failing("writing", exits.length + 1)))
      }
      if (performance.now() >= until) break
    }
    yield* commitGroup(session, group?.network).pipe(failing("committing", exits.length))
    if (group?.wroteEvents === true) onEvents()
    const position = group?.network.feedPosition
    if (position !== undefined && position !== before) grew({ network, position })
    return exits
  })

  const commit = (network: string, commands: ReadonlyArray<Command>) =>
    connection.session.pipe(
      failing("connecting", commands.length),
      Effect.flatMap((session) => attempt(network, commands, session)),
      Effect.scoped,
      Effect.retry({ times: CONFLICTS, while: ({ cause }) => isConflict(cause) }),
    )

  const meaning = ({ operation, repeatable }: Command, failed: GroupFailed): StorageError => {
    if (failed.while === "committing" && failed.cause.lost) {
      const reason = `${failed.cause.reason}; it is not known whether the write was stored`
      return new StorageError({ operation, reason, retryable: repeatable })
    }
    if (failed.while !== "connecting") return classify(operation, failed.cause)
    return new StorageError({ operation, reason: failed.cause.reason, retryable: true })
  }

  /** Writes the first commands of a lane and takes them off it. */
  const writeGroup: (network: string, commands: Array<Command>) => Effect.Effect<void> = Effect.fnUntraced(
    function* (network, commands) {
      const result = yield* Effect.result(commit(network, commands))
      if (Result.isSuccess(result)) {
        const exits = result.success
        const written = commands.splice(0, exits.length)
        for (let i = 0; i < written.length; i++) settle(written[i]!, exits[i]!)
        return
      }
      const failed = result.failure
      const tried = commands.splice(0, failed.tried)
      const before = failed.while === "connecting" || failed.while === "locking"
      if (tried.length === 1 || before || failed.cause.lost) {
        for (const command of tried) settle(command, Exit.fail(meaning(command, failed)))
        return
      }
      // The one that broke the group is found by writing each alone.
      for (const command of tried) yield* writeGroup(network, [command])
    },
  )

  const lane = (network: string, commands: Array<Command>): Effect.Effect<void> =>
    Effect.gen(function* () {
      while (commands.length > 0) {
        // What others are about to write joins this group: a commit costs far more than a turn of theirs.
        yield* Effect.yieldNow
        yield* turns.withPermits(1)(writeGroup(network, commands))
      }
      lanes.delete(network)
    }).pipe(
      Effect.catchDefect((defect) =>
        Effect.logError("the storage writer broke and goes on with what comes next", defect).pipe(
          Effect.andThen(
            Effect.sync(() => {
              lanes.delete(network)
              for (const command of commands.splice(0)) settle(command, Exit.fail(broken(command.operation, defect)))
            }),
          ),
        ),
      ),
    )

  // In the order that brings what is queued to an end before the fibers are interrupted.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return FiberSet.awaitEmpty(running)
    }),
  )

  const enqueue = (network: string, command: Command): Effect.Effect<unknown> => {
    const present = lanes.get(network)
    if (present !== undefined) return Effect.sync(() => present.push(command))
    const commands = [command]
    lanes.set(network, commands)
    return FiberSet.run(running, lane(network, commands))
  }

  const submit = (network: string, command: Omit<Command, "done" | "begun" | "abandoned">) =>
    queued.withPermits(1)(
      Effect.suspend(() => {
        const { operation } = command
        if (closed) return new StorageError({ operation, reason: "the storage is closed", retryable: false })
        const waiting: Command = { ...command, done: Deferred.makeUnsafe(), begun: false, abandoned: false }
        return Effect.uninterruptible(enqueue(network, waiting)).pipe(
          Effect.andThen(Deferred.await(waiting.done)),
          Effect.onInterrupt(() =>
            Effect.suspend(() => {
              waiting.abandoned = true
              // Whoever reads next must see what it wrote, or know that it never will.
              return waiting.begun ? Effect.exit(Deferred.await(waiting.done)) : Effect.void
            }),
          ),
        )
      }),
    )

  return {
    write: (operation, network, work) =>
      submit(network, {
        operation,
        makes: true,
        repeatable: true,
        run: (group) => work(group!),
      }) as Effect.Effect<any, any>,
    writeAs: (operation, owner, work, { repeatable } = { repeatable: true }) =>
      submit(owner.network, {
        operation,
        makes: false,
        repeatable,
        run: (group) =>
          group === undefined || group.network.epoch !== owner.epoch
            ? Effect.succeed(Exit.fail(new NotOwner({ network: owner.network })))
            : Effect.map(work(group), Exit.succeed),
      }) as Effect.Effect<any, StorageError | NotOwner>,
  }
})

const broken = (operation: string, defect: unknown): StorageError =>
  new StorageError({ operation, reason: `the writer broke: ${String(defect)}`, retryable: false })
