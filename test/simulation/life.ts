import { Deferred, Effect, Exit, Fiber, Latch, Scope } from "effect"
import type { Actions, DeadLetters, EventStore, Feed, Resources, Storage } from "../../core/index.ts"

/** What a running runtime offers. */
export interface Parts {
  readonly resources: Resources["Service"]
  readonly feed: Feed["Service"]
  readonly letters: DeadLetters["Service"]
  readonly actions: Actions["Service"]
  /** Where the action keeps its table; null without one. */
  readonly ledger: EventStore["Service"] | null
}

/** One runtime, from its start to its end: as a process that can be killed, frozen and stopped. */
export class Life {
  readonly number: number
  readonly scope = Scope.makeUnsafe()
  readonly storageScope = Scope.makeUnsafe()
  /** Its database, beneath everything that the simulation put above. */
  storage: Storage["Service"] | null = null
  parts: Parts | null = null
  /** It does nothing any more. */
  isOver = false
  readonly #died = Deferred.makeUnsafe<void>()
  #isDead = false
  readonly #thawed = Latch.makeUnsafe(true)
  readonly #log: (text: string) => void

  constructor(number: number, log: (text: string) => void) {
    this.number = number
    this.#log = (text) => log(`life ${number} ${text}`)
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Goes on at once, or when it is thawed, or never. */
  readonly proceeds: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isDead) return Effect.never
    return this.#thawed.isOpen() ? Effect.void : Effect.andThen(this.#thawed.await, this.proceeds)
  })

  readonly died: Effect.Effect<void> = Deferred.await(this.#died)

  /** From now on nothing that it does reaches the database or a sink. */
  die(): void {
    if (this.#isDead || this.isOver) return
    this.#log("dies")
    this.#isDead = true
    this.isOver = true
    Deferred.doneUnsafe(this.#died, Effect.void)
  }

  freeze(): void {
    this.#log("is frozen")
    this.#thawed.closeUnsafe()
  }

  thaw(): void {
    this.#log("is thawed")
    this.#thawed.openUnsafe()
  }

  /** Gives up the database of one that is over, and ends what still waits. */
  readonly bury = Effect.gen({ self: this }, function* () {
    yield* Effect.forkDetach(Scope.close(this.scope, Exit.void))
    yield* Scope.close(this.storageScope, Exit.void)
  })

  /** Ends it as a signal does; it may die meanwhile. */
  readonly stop = Effect.gen({ self: this }, function* () {
    this.#log("is asked to stop")
    const closing = yield* Effect.forkDetach(Scope.close(this.scope, Exit.void))
    yield* Effect.raceFirst(Effect.asVoid(Fiber.await(closing)), this.died)
    this.isOver = true
    yield* this.bury
    this.#log("has ended")
  })
}
