import { Deferred, Effect, Fiber } from "effect"
import { flipBack, happen, mine } from "./chain-events.ts"
import { findLate } from "./late-finds.ts"
import { keyOfLetter, listLetters } from "./letters.ts"
import type { Life, Parts } from "./life.ts"
import { away, calm } from "./moods.ts"
import type { Random } from "../../server/devnet/simulated/random.ts"
import type { ChainEvent, Event, LetterOperation, Round } from "./schedule.ts"
import { CHANGING, monitorDefinition, NETWORK, sinkDefinition, SINKS } from "./setup.ts"
import { startLife } from "./start-life.ts"
import { hasLooked, isQuiet, unrest, waitAsItFalls, waitFor, waitWhile } from "./waits.ts"
import type { World } from "./world.ts"

/** The secondary behind everything of a block. */
const END_OF_BLOCK = 2 ** 31 - 1

/** The longest waits for what may or may not come, in ms of the machine. */
const PATIENCE_MS = { trigger: 150, notice: 60, look: 300, change: 2_000, quiet: 10_000 }

type Change = (parts: Parts) => Effect.Effect<unknown, { readonly message: string }>

/** Plays the rounds of a schedule over a world. */
export class Driver {
  readonly #world: World
  readonly #random: Random
  life!: Life
  /** The predicates that the changing monitor had. */
  readonly versions: Array<number> = [CHANGING.above!]

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
  }

  readonly start = Effect.gen({ self: this }, function* () {
    this.life = yield* startLife(this.#world)
    // It may have died while it started.
    while (this.life.isOver) {
      yield* this.life.bury
      this.life = yield* startLife(this.#world)
    }
  })

  readonly round = Effect.fnUntraced(function* (this: Driver, { bursts, moods, trigger, event, settles }: Round) {
    const world = this.#world
    world.log(`round: ${JSON.stringify({ event, trigger, bursts, settles })}`)
    world.moods = moods
    const fired = world.points.arm(trigger, (life) => this.#atOnce(event, life))
    const hasFired = () => Deferred.isDoneUnsafe(fired)
    const takesBack = ["invalidate", "retract", "rewind"].includes(trigger.point.split(":")[0]!)
    for (const [i, blocks] of bursts.entries()) {
      // What was just told is to be within the reach of the next reorganisation.
      if (hasFired() && event._tag === "Crash" && event.sinksAreAway) break
      mine(world, this.#random, blocks)
      if (takesBack && i === 1 && !hasFired())
        happen(world, this.#random, { _tag: "Reorg", depth: 3, longer: 1, same: false })
      yield* waitWhile(() => !hasFired() && world.minted < world.chain.head.number, PATIENCE_MS.notice)
    }
    yield* waitFor(
      Effect.suspend(() => (hasFired() ? Effect.succeed(true) : isQuiet(world, this.life))),
      PATIENCE_MS.trigger,
    )
    if (!hasFired()) {
      world.points.disarm()
      world.log("the point was not passed")
      // The trigger may be one of a start.
      if (event._tag === "Crash" && this.#isStart(trigger.point)) yield* this.#crashAtStart(trigger)
      this.#atOnce(event, this.life)
    }
    yield* this.#carryOut(event)
    if (!settles) return
    world.moods = calm
    const blocksLeft = () => Math.max(0, world.chain.head.number - world.minted)
    const isDone = yield* waitAsItFalls(isQuiet(world, this.life), blocksLeft, PATIENCE_MS.quiet)
    if (world.providers === null) return
    if (isDone) yield* findLate(world, this.life)
    // One node is well all the time; sinks may need longer.
    else if (world.minted < world.chain.head.number)
      world.violation(
        `is not current although a node is well: ${yield* unrest(world, this.life)}, while ${world.providers.wrong}`,
      )
  })

  /** The sinks come back when the runtime has seen where the chain went: what was told before may be gone by then. */
  readonly #startWithoutSinks = Effect.fnUntraced(function* (this: Driver) {
    const world = this.#world
    const { moods } = world
    world.moods = away
    yield* this.start
    yield* waitFor(hasLooked(this.life), PATIENCE_MS.look)
    world.moods = moods
  })

  #isStart(point: string): boolean {
    return ["claim", "change", "begin"].includes(point.split(":")[0]!)
  }

  readonly #crashAtStart = Effect.fnUntraced(function* (this: Driver, trigger: Round["trigger"]) {
    const world = this.#world
    this.life.die()
    yield* this.life.bury
    world.points.arm({ ...trigger, passing: 1 }, (life) => life.die())
    yield* this.start
    yield* waitWhile(() => !this.life.isOver && world.minted < world.chain.head.number, PATIENCE_MS.trigger)
    world.points.disarm()
  })

  /** What happens in the very step that passes the trigger. */
  #atOnce(event: Event, life: Life): void {
    if (event._tag === "Crash") life.die()
    if (event._tag === "TakeOver") life.freeze()
    if (event._tag === "Chain") {
      const [first] = event.events
      if (first?._tag === "Reorg") happen(this.#world, this.#random, first)
    }
  }

  readonly #carryOut = Effect.fnUntraced(function* (this: Driver, event: Event) {
    const world = this.#world
    switch (event._tag) {
      case "Chain": {
        const [first] = event.events
        yield* this.#chain(first?._tag === "Reorg" ? event.events.slice(1) : event.events)
        return
      }
      case "Crash": {
        yield* this.life.bury
        yield* this.#chain(event.meanwhile)
        if (event.sinksAreAway && event.meanwhile.some(({ _tag }) => _tag === "Reorg")) yield* this.#startWithoutSinks()
        else yield* this.start
        return
      }
      case "Stop": {
        const stopping = yield* Effect.forkChild(this.life.stop)
        yield* this.#chain(event.during)
        yield* Fiber.await(stopping)
        yield* this.#chain(event.meanwhile)
        yield* this.start
        return
      }
      case "TakeOver": {
        yield* this.#takeOver(event.meanwhile)
        return
      }
      case "Rewind": {
        yield* this.change("rewind", ({ resources }) =>
          Effect.gen(function* () {
            const checkpoint = (yield* resources.networks)[0]?.checkpoint?.cursor.primary ?? 0
            if (checkpoint < 2) return
            const primary = Math.max(1, checkpoint - event.depth)
            world.takenBack.rewindBegins(primary)
            yield* resources.rewindNetwork(NETWORK, { primary, secondary: END_OF_BLOCK })
          }),
        )
        return
      }
      case "Pause": {
        yield* this.change("pause", ({ resources }) => resources.pauseNetwork(NETWORK))
        yield* this.#chain(event.meanwhile)
        yield* this.change("resume", ({ resources }) => resources.resumeNetwork(NETWORK))
        return
      }
      case "PutSink": {
        const setup = SINKS.find(({ id }) => id === event.sink)!
        const version = this.#random.between(1, 1_000_000)
        yield* this.change("put the sink", ({ resources }) => resources.putSink(sinkDefinition(setup, version)))
        return
      }
      case "PauseSink": {
        yield* this.#pauseSink(event)
        return
      }
      case "Letters": {
        yield* this.#operate(event.operation)
        return
      }
      case "Monitor": {
        yield* this.#changeMonitor(event)
        return
      }
      case "StaleNode": {
        const node = world.providers?.staleNode ?? world.nodes[0]!
        node.chain = world.chain.fork()
        yield* this.#chain(event.events)
        yield* waitWhile(() => true, this.#random.between(0, 20))
        node.chain = world.chain
      }
    }
  })

  readonly #chain = Effect.fnUntraced(function* (this: Driver, events: ReadonlyArray<ChainEvent>) {
    const world = this.#world
    for (const event of events) {
      const fork = happen(world, this.#random, event)
      if (fork === null) continue
      const hash = world.chain.head.hash
      if (event._tag === "Flip" && event.isSeen) yield* waitFor(this.#hasSeen(hash), PATIENCE_MS.notice)
      flipBack(world, this.#random, fork)
    }
  })

  /** Whether the block stands in rows. */
  #hasSeen(hash: string): Effect.Effect<boolean> {
    const { storage, isOver } = this.life
    if (storage === null || isOver) return Effect.succeed(true)
    return storage.anchors(NETWORK, Number.MAX_SAFE_INTEGER, 1).pipe(
      Effect.map(([newest]) => newest?.hash === hash),
      Effect.orElseSucceed(() => true),
    )
  }

  readonly #takeOver = Effect.fnUntraced(function* (this: Driver, meanwhile: ReadonlyArray<ChainEvent>) {
    const world = this.#world
    const old = this.life
    yield* this.start
    const { life } = this
    yield* waitWhile(() => world.owner !== life && !life.isOver, PATIENCE_MS.change)
    yield* this.#chain(meanwhile)
    yield* waitFor(isQuiet(world, life), this.#random.between(0, 100))
    old.thaw()
    yield* waitFor(this.#standsBy(old), this.#random.between(0, 100))
    if (this.#random.chance(0.5)) yield* old.stop
    else {
      old.die()
      yield* old.bury
    }
  })

  #standsBy(life: Life): Effect.Effect<boolean> {
    if (life.parts === null) return Effect.succeed(true)
    return life.parts.resources.networks.pipe(
      Effect.map(([network]) => network?.state === "STANDBY"),
      Effect.orElseSucceed(() => true),
    )
  }

  readonly #pauseSink = Effect.fnUntraced(function* (this: Driver, event: Event & { readonly _tag: "PauseSink" }) {
    const world = this.#world
    const { sink, isGone, meanwhile } = event
    const receiver = world.receivers.get(sink)!
    // What it is told while it rests dies, unless its buffer is durable.
    if (receiver.setup.holdsCheckpoint) receiver.missedRetraction = true
    if (isGone) world.gone.add(sink)
    else yield* this.change("pause the sink", ({ resources }) => resources.pauseSink(sink))
    mine(world, this.#random, this.#random.between(1, 6))
    yield* waitWhile(() => world.minted < world.chain.head.number, PATIENCE_MS.notice)
    yield* this.#chain(meanwhile)
    world.gone.delete(sink)
    // Taken up at once here, and a little later where it is stored.
    yield* this.change("resume the sink", ({ resources }) => resources.resumeSink(sink))
  })

  /** What an operator does with dead letters; what comes of it shows in the end. */
  readonly #operate = Effect.fnUntraced(function* (this: Driver, operation: LetterOperation) {
    const world = this.#world
    const { life } = this
    if (life.parts === null || life.isOver) return
    const { letters } = life.parts
    const listed = yield* listLetters(world, life)
    const letter = listed.length === 0 ? null : this.#random.pick(listed)
    const sink = letter?.sink ?? SINKS[0]!.id
    world.log(`${operation}: ${listed.length} letters, ${letter?.sink} ${letter?.kind} ${letter?.matchId.slice(0, 8)}`)
    if (letter === null) return
    if (operation === "discard" && letter.kind === "match") {
      world.discarded.add(`${letter.sink} ${keyOfLetter(letter)}`)
    }
    const work: Effect.Effect<unknown, unknown> = {
      replay: letters.replay(letter.id),
      replayAll: letters.replayAll({ network: NETWORK }, 1000),
      discard: letter.kind === "match" ? letters.discard(letter.id) : Effect.void,
      offerRetractions: letters.offerRetractions(NETWORK, sink),
    }[operation]
    // Not waited for: other things happen meanwhile.
    yield* Effect.forkDetach(
      Effect.raceFirst(
        Effect.exit(work).pipe(
          Effect.flatMap((exit) => Effect.sync(() => world.log(`${operation}: ${JSON.stringify(exit)}`))),
        ),
        life.died,
      ),
    )
  })

  readonly #changeMonitor = Effect.fnUntraced(function* (this: Driver, event: Event & { readonly _tag: "Monitor" }) {
    const setup = { ...CHANGING, above: event.change === "edit" ? event.above : this.versions.at(-1)! }
    this.versions.push(setup.above)
    if (event.change === "disable") {
      yield* this.change("disable the monitor", ({ resources }) =>
        resources.putMonitor(monitorDefinition(setup, false)),
      )
    }
    if (event.change === "delete") {
      // It waits until nothing is owed: what a deletion gives up, nobody can know of.
      yield* this.#tryTo(({ resources }) =>
        Effect.catchTag(resources.deleteMonitor(setup.id), "NotFound", () => Effect.void),
      )
    }
    if (event.change !== "edit") {
      mine(this.#world, this.#random, this.#random.between(1, 5))
      yield* waitWhile(() => this.#world.minted < this.#world.chain.head.number, PATIENCE_MS.notice)
    }
    yield* this.change("put the monitor", ({ resources }) => resources.putMonitor(monitorDefinition(setup)))
  })

  /** Changes something through the runtime's interface, until it takes the change. */
  readonly change = Effect.fnUntraced(function* (this: Driver, what: string, make: Change) {
    const refusal = yield* this.#tryTo(make)
    if (refusal === null) this.#world.log(`done: ${what}`)
    else this.#world.violation(`could not ${what}: ${refusal}`)
  })

  /** Answers why it was refused at last, or null if it was done, or its runtime is over. */
  readonly #tryTo = Effect.fnUntraced(function* (this: Driver, make: Change) {
    let refusal: string | null = null
    const tried = Effect.suspend(() => {
      const { parts, isOver, died } = this.life
      if (parts === null || isOver) return Effect.succeed(true)
      return make(parts).pipe(
        Effect.as(true),
        Effect.catch((error) => {
          refusal = error.message
          return Effect.succeed(false)
        }),
        Effect.raceFirst(Effect.as(died, true)),
      )
    })
    return (yield* waitFor(tried, PATIENCE_MS.change)) ? null : refusal
  })
}
