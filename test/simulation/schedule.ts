import { calm, type Moods } from "./moods.ts"
import type { Trigger } from "./points.ts"
import { Random } from "../../server/devnet/simulated/random.ts"
import { SINKS } from "./setup.ts"

/** The chain leaves blocks behind: `depth` of them are replaced by `depth + longer` others. */
export interface Reorg {
  readonly depth: number
  readonly longer: number
  /** The new blocks hold the logs of the old ones. */
  readonly same: boolean
}

/** What becomes of the chain while nobody looks, or where it hurts. */
export type ChainEvent =
  | ({ readonly _tag: "Reorg" } & Reorg)
  /** Another fork, and the first one again. */
  | ({ readonly _tag: "Flip"; readonly isSeen: boolean } & Reorg)
  | { readonly _tag: "Mine"; readonly blocks: number }

export type LetterOperation = "replay" | "replayAll" | "discard" | "offerRetractions"

export type MonitorChange = "edit" | "disable" | "delete"

/** What a round is about. */
export type Event =
  | { readonly _tag: "Chain"; readonly events: ReadonlyArray<ChainEvent> }
  /** The runtime is killed, `meanwhile` happens, and it starts over. */
  | { readonly _tag: "Crash"; readonly meanwhile: ReadonlyArray<ChainEvent>; readonly sinksAreAway: boolean }
  /** It is asked to stop; `during` happens while it drains. */
  | { readonly _tag: "Stop"; readonly during: ReadonlyArray<ChainEvent>; readonly meanwhile: ReadonlyArray<ChainEvent> }
  /** Another runtime takes over from one that is frozen, which goes on a while later. */
  | { readonly _tag: "TakeOver"; readonly meanwhile: ReadonlyArray<ChainEvent> }
  | { readonly _tag: "Rewind"; readonly depth: number }
  | { readonly _tag: "Pause"; readonly meanwhile: ReadonlyArray<ChainEvent> }
  | { readonly _tag: "PutSink"; readonly sink: string }
  /** By an operator, or because the receiver says that it is gone. */
  | {
      readonly _tag: "PauseSink"
      readonly sink: string
      readonly isGone: boolean
      readonly meanwhile: ReadonlyArray<ChainEvent>
    }
  | { readonly _tag: "Letters"; readonly operation: LetterOperation }
  | { readonly _tag: "Monitor"; readonly change: MonitorChange; readonly above: number }
  /** The node stays behind on a fork of its own for a while. */
  | { readonly _tag: "StaleNode"; readonly events: ReadonlyArray<ChainEvent> }

export interface Round {
  /** Blocks that are mined in one go, one number for each. */
  readonly bursts: ReadonlyArray<number>
  readonly moods: Moods
  readonly trigger: Trigger
  readonly event: Event
  /** Everything is finished before the next round begins. */
  readonly settles: boolean
}

/** Points that a running network passes all the time. */
const BUSY = ["mint", "settle", "checkpoint", "deliver"]

/** Points of taking back, which follow a reorganisation. */
const TAKING_BACK = ["invalidate", "retract", "rewind"]

/** Points of a start. */
const STARTING = ["claim", "change", "begin"]

const reorgOf = (random: Random): Reorg => ({
  depth: random.chance(0.7) ? random.between(1, 6) : random.between(7, 15),
  longer: random.between(0, 3),
  same: random.chance(0.3),
})

const chainEvent = (random: Random): ChainEvent => {
  const kind = random.next()
  if (kind < 0.5) return { _tag: "Reorg", ...reorgOf(random) }
  if (kind < 0.8) return { _tag: "Flip", isSeen: random.chance(0.5), ...reorgOf(random) }
  return { _tag: "Mine", blocks: random.between(1, 8) }
}

const chainEvents = (random: Random, most: number): ReadonlyArray<ChainEvent> =>
  Array.from({ length: random.between(0, most) }, () => chainEvent(random))

const crash = (random: Random): Event => ({
  _tag: "Crash",
  meanwhile: chainEvents(random, 2),
  sinksAreAway: random.chance(0.3),
})

/** What each seed goes through at least. */
const events = (random: Random): ReadonlyArray<Event> => {
  const flip = { _tag: "Flip", isSeen: true, ...reorgOf(random) } as const
  const reorg = () => ({ _tag: "Reorg", ...reorgOf(random) }) as const
  return random.shuffle<Event>([
    { _tag: "Chain", events: [reorg()] },
    { _tag: "Chain", events: [reorg(), reorg()] },
    { _tag: "Chain", events: [flip] },
    { _tag: "Crash", meanwhile: [{ ...reorg(), depth: random.between(6, 15) }], sinksAreAway: true },
    crash(random),
    crash(random),
    { _tag: "Stop", during: [reorg()], meanwhile: chainEvents(random, 1) },
    { _tag: "TakeOver", meanwhile: [reorg(), ...chainEvents(random, 1)] },
    { _tag: "Rewind", depth: random.between(1, 20) },
    { _tag: "Pause", meanwhile: chainEvents(random, 2) },
    { _tag: "PutSink", sink: random.pick(SINKS).id },
    {
      _tag: "PauseSink",
      sink: random.pick(SINKS).id,
      isGone: random.chance(0.5),
      meanwhile: chainEvents(random, 2),
    },
    { _tag: "Letters", operation: "replay" },
    { _tag: "Letters", operation: "replayAll" },
    { _tag: "Letters", operation: random.pick(["replay", "replayAll", "discard", "offerRetractions"]) },
    { _tag: "Monitor", change: "edit", above: random.between(0, 900) },
    { _tag: "Monitor", change: random.pick(["edit", "disable", "delete"]), above: random.between(0, 900) },
    { _tag: "StaleNode", events: [reorg()] },
  ])
}

const triggerOf = (random: Random, event: Event): Trigger => {
  const side = random.pick(["before", "after"])
  const takesBack = random.chance(0.3)
  const isStart = event._tag === "Crash" && random.chance(0.1)
  // What a receiver has heard of and nobody knows is the hardest to take back.
  const isUnknown = event._tag === "Crash" && event.sinksAreAway && random.chance(0.7)
  if (isUnknown) return { point: "deliver:after", passing: random.between(1, 12) }
  // Nor may one that was replaced write what it was about to.
  if (event._tag === "TakeOver" && random.chance(0.7)) {
    return {
      point: `${random.pick(["mint", "mint", "settle", "checkpoint", "rewind"])}:before`,
      passing: random.between(1, 3),
    }
  }
  const step = random.pick(isStart ? STARTING : takesBack ? TAKING_BACK : BUSY)
  const most = takesBack || isStart ? 2 : step === "deliver" ? 12 : 4
  return { point: `${step}:${side}`, passing: random.between(1, most) }
}

const moodsOf = (random: Random): Moods => {
  if (random.chance(0.35)) return calm
  const share = (most: number) => (random.chance(0.5) ? random.next() * most : 0)
  return {
    sink: {
      transient: share(0.4),
      rateLimited: share(0.15),
      permanent: share(0.1),
      tooLarge: share(0.3),
      unknown: share(0.5),
      slow: share(0.2),
    },
    storage: { refused: share(0.15), late: share(0.15) },
    rpc: { failing: share(0.03) },
  }
}

/** Everything that happens in the simulation of a seed. */
export const scheduleOf = (seed: number): ReadonlyArray<Round> => {
  const random = new Random(seed, "schedule")
  return events(random).map((event) => ({
    bursts: Array.from({ length: random.between(2, 4) }, () => random.between(1, 10)),
    moods: moodsOf(random),
    trigger: triggerOf(random, event),
    event,
    settles: random.chance(0.3),
  }))
}

/** As many rounds as any schedule has. */
const ROUNDS_ABOUT = 18

/** From one seed whose rounds are taken to the next; more than are ever tried in a row. */
const SEEDS_APART = 1000

/**
 * Rounds about some kinds of events alone: those of the seed's schedule, and of others. None waits until everything is
 * finished: what has a broken rule may never be.
 */
export const scheduleAbout = (seed: number, kinds: ReadonlySet<Event["_tag"]>): ReadonlyArray<Round> => {
  const rounds: Array<Round> = []
  for (let from = seed; rounds.length < ROUNDS_ABOUT; from += SEEDS_APART) {
    rounds.push(...scheduleOf(from).filter(({ event }) => kinds.has(event._tag)))
  }
  return rounds.map((round) => ({ ...round, settles: false }))
}

/** The blocks that a seed mines at least. */
export const BLOCKS = 310
