import { Effect, Fiber, Option, Queue, type Scope } from "effect"
import type { NetworkCondition } from "./network-condition.ts"
import type { Command } from "./supervisor-command.ts"

/**
 * Runs what sends something while no pipeline does, until a command comes that it makes way for, which stays in the queue;
 * then `leave` is run, and attempts under way get a while to end. Null if it did not get to its end.
 *
 * @param isOver looked at after other commands: whether they changed what it runs for
 */
export type MakingWay = <A, E>(
  run: Effect.Effect<A, E, Scope.Scope>,
  leave: Effect.Effect<void>,
  isOver: () => boolean,
) => Effect.Effect<A | null, E, Scope.Scope>

export const makeMakingWay = (options: {
  readonly commands: Queue.Queue<Command>
  readonly condition: NetworkCondition
  /** For how long attempts under way are waited for. */
  readonly drainTimeoutMs: number
  /** Is told that a refresh was taken from the queue. */
  readonly onRefresh: () => void
}): MakingWay => {
  const { commands, condition } = options

  /** Completes when something comes that what is sent makes way for, and leaves it in the queue; answers what it is. */
  const interruption = Effect.fnUntraced(function* (isOver: () => boolean): Effect.fn.Return<Command["_tag"]> {
    while (true) {
      const { _tag } = yield* Queue.peek(commands)
      if (condition.ending === "leave" || _tag === "Between" || _tag === "TakeBack" || isOver()) return _tag
      yield* Effect.uninterruptible(
        Effect.andThen(
          Queue.take(commands),
          Effect.sync(() => {
            if (_tag === "Refresh") options.onRefresh()
          }),
        ),
      )
      // What changed while the command was taken brought no other one.
      if (isOver()) return _tag
    }
  })

  return Effect.fnUntraced(function* <A, E>(
    run: Effect.Effect<A, E, Scope.Scope>,
    leave: Effect.Effect<void>,
    isOver: () => boolean,
  ) {
    const fiber = yield* Effect.forkScoped(run)
    const cut = yield* Effect.raceFirst(Effect.as(Fiber.await(fiber), null), interruption(isOver))
    yield* leave
    // Who asks for a change of the rows is not kept waiting: the attempts under way are made again.
    const grace = cut === "Between" && condition.ending !== "leave" ? 0 : options.drainTimeoutMs
    const exit = yield* Effect.timeoutOption(Fiber.await(fiber), grace)
    if (Option.isSome(exit)) return yield* exit.value
    yield* Fiber.interrupt(fiber)
    return null
  })
}
