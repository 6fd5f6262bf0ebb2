import { mkdtemp, rm } from "node:fs/promises"
import { existsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Effect, References } from "effect"
import { checkChanging, checkFeed, checkHeld, checkTogether } from "./checks.ts"
import { mine } from "./chain-events.ts"
import { fastClock } from "./clock.ts"
import { Driver } from "./drive.ts"
import { AUDIT_LAG, findLate, learn } from "./late-finds.ts"
import { ledgerDebts, readLedger } from "./ledger.ts"
import { keyOfLetter, listLetters } from "./letters.ts"
import type { Life } from "./life.ts"
import { calm } from "./moods.ts"
import type { Mutant } from "./mutants.ts"
import { Random } from "../../server/devnet/simulated/random.ts"
import { BLOCKS, scheduleAbout, scheduleOf } from "./schedule.ts"
import { CHANGING, CHANGING_SINK, NETWORK, SINKS } from "./setup.ts"
import { isQuiet, unrest, waitFor } from "./waits.ts"
import { makeWorld, type World } from "./world.ts"

export interface Options {
  readonly mutant?: Mutant
  readonly trace?: (text: string) => void
}

/** The longest that a runtime may take to finish when nothing is in its way any more, in ms of the machine. */
const QUIET_MS = 10_000

/** Left to worlds of one node: a round costs more where there are several, and these have nothing to do with them. */
const ABOUT_SINKS: ReadonlySet<string> = new Set(["PutSink", "PauseSink", "Letters"])

/** Blocks of which some are too far from the head to be read one by one. */
const PAST = [70, 130] as const

const FOLDER = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(FOLDER, "blockwatcher-simulation-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true })),
)

const becomeQuiet = Effect.fnUntraced(function* (world: World, driver: Driver) {
  if (yield* waitFor(isQuiet(world, driver.life), QUIET_MS)) return true
  const { parts } = driver.life
  const [network] = parts === null ? [] : yield* parts.resources.networks
  const why = yield* unrest(world, driver.life)
  world.violation(`does not become quiet: ${why}; ${network?.state}: ${network?.error}`)
  return false
})

/** Waits until everything is told that was left out, too. */
const becomeComplete = Effect.fnUntraced(function* (world: World, driver: Driver) {
  if (!(yield* becomeQuiet(world, driver))) return false
  yield* findLate(world, driver.life)
  return yield* becomeQuiet(world, driver)
})

/** What is held once everything is done but what died. */
const checkWithLetters = Effect.fnUntraced(function* (world: World, driver: Driver) {
  yield* learn(world, driver.life)
  const letters = yield* listLetters(world, driver.life)
  const of = (kind: string) => letters.filter((letter) => letter.kind === kind)
  const unheard = new Set(of("match").map((letter) => `${letter.sink} ${keyOfLetter(letter)}`))
  const kept = new Set(of("retracted").map(({ sink, matchId }) => `${sink} ${matchId}`))
  for (const { id } of SINKS) {
    checkHeld(world, world.receivers.get(id)!, {
      missing: ({ key }) => unheard.has(`${id} ${key}`) || world.discarded.has(`${id} ${key}`),
      phantom: (match) => kept.has(`${id} ${match}`),
    })
    checkTogether(world, world.receivers.get(id)!)
  }
  world.log(`${letters.length} letters are left`)
})

/** Sends all that died. */
const sendLetters = Effect.fnUntraced(function* (driver: Driver) {
  for (const { id } of SINKS) {
    yield* driver.change("offer retractions", ({ letters }) => letters.offerRetractions(NETWORK, id))
  }
  yield* driver.change("replay", ({ letters }) => letters.replayAll({ network: NETWORK }, 10_000))
})

/** The table of the action holds what stands on the chain, whatever happened to its runs. */
const checkLedger = Effect.fnUntraced(function* (world: World, { parts }: Life) {
  if (parts === null || parts.ledger === null) return
  checkHeld(world, yield* readLedger(parts.ledger), { missing: () => false, phantom: () => false })
  const { stuck } = yield* ledgerDebts(parts.actions)
  if (stuck > 0) world.violation(`${stuck} deliveries to actions are failed or parked`)
})

const checkAll = Effect.fnUntraced(function* (world: World, driver: Driver) {
  const kept = yield* listLetters(world, driver.life)
  for (const { whyNot, kind, sink, matchId } of kept) {
    // A retraction is not offered while its match stands again.
    const isDue = kind === "match" ? whyNot === null : world.receivers.get(sink)?.held.has(matchId) !== true
    if (isDue) world.violation(`${sink}: the letter of the ${kind} ${matchId} is left`)
  }
  for (const { id } of SINKS) {
    checkHeld(world, world.receivers.get(id)!, {
      missing: ({ key }) => world.discarded.has(`${id} ${key}`),
      phantom: () => false,
    })
  }
  yield* checkLedger(world, driver.life)
  yield* checkFeed(world, driver.life)
  const monitor = (yield* driver.life.parts!.resources.monitors).find(({ id }) => id === CHANGING.id)
  checkChanging(world, world.receivers.get(CHANGING_SINK.id)!, driver.versions, {
    above: driver.versions.at(-1)!,
    effectiveFrom: monitor?.effectiveFrom ?? null,
  })
})

const play = Effect.fnUntraced(function* (world: World) {
  const random = new Random(world.seed, "play")
  const driver = new Driver(world, random)
  mine(world, random, world.providers === null ? random.between(1, 20) : random.between(...PAST))
  yield* driver.start
  const about = world.mutant?.about
  const schedule = about === undefined ? scheduleOf(world.seed) : scheduleAbout(world.seed, about)
  for (const round of schedule) {
    if (world.providers === null || !ABOUT_SINKS.has(round.event._tag)) yield* driver.round(round)
  }
  world.moods = calm
  mine(world, random, Math.max(1, BLOCKS - world.chain.head.number))
  world.providers?.heal()
  // The newest blocks are compared with their receipts when there are newer ones.
  if (world.hasLateFinds) world.chain.mine(AUDIT_LAG)
  for (const { id } of SINKS) {
    yield* driver.change("resume the sink", ({ resources }) => resources.resumeSink(id))
  }
  if (yield* becomeComplete(world, driver)) {
    yield* checkWithLetters(world, driver)
    yield* sendLetters(driver)
    if (yield* becomeQuiet(world, driver)) yield* checkAll(world, driver)
  }
  yield* driver.life.stop
})

/** Ends what still runs when a simulation is given up. */
const buryAll = ({ lives }: World) =>
  Effect.forEach(lives, (life) => {
    life.die()
    return life.bury
  })

/** Plays a seed, and answers everything that was wrong; with a mutant, only until that has shown itself. */
export const runSeed = (seed: number, { mutant, trace }: Options = {}): Promise<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const world = yield* makeWorld({
      seed,
      path: join(folder, "rows.db"),
      mutant: mutant ?? null,
      trace: trace ?? null,
    })
    yield* play(world).pipe(Effect.raceFirst(world.shown), Effect.ensuring(buryAll(world)))
    return world.violations
  }).pipe(
    Effect.scoped,
    Effect.provideService(Clock.Clock, fastClock()),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.runPromise,
  )
