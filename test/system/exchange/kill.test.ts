import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { callSteps, transactionSteps } from "../../support/exchange-failpoints.ts"
import { postgres } from "../../support/postgres.ts"
import { temporaryFolder, waitUntil } from "../../support/process.ts"
import { type Choices, choices, isSoak, seed } from "../seed.ts"
import { type Database, postgresDatabase, sqliteDatabase } from "./rows.ts"
import { type Exchange, setUpExchange } from "./world.ts"

/** How often a runner is killed, over each database. */
const KILLS = isSoak ? 200 : 5

/** All has to settle, and is judged, after so many. */
const JUDGED_EVERY = isSoak ? 20 : KILLS

const TIMEOUT_MS = isSoak ? 7_200_000 : 300_000

/** Between two things that happen to the chain, in ms. */
const LIFE_MS = 60

/** The chain rests while so many deliveries are open, so that a slow machine has no more to do than a quick one. */
const MOST_OPEN = 24

/** Where a runner can be killed: before and after each transaction of actions and of the chain's events, and in calls. */
const points: ReadonlyArray<string> = [
  ...["mint", "invalidate", "rewind", ...transactionSteps].flatMap((step) => [`${step}:before`, `${step}:after`]),
  ...callSteps,
]

/** Draws all of them before any again. */
const drawing = <A>(items: ReadonlyArray<A>, { between }: Choices): (() => A) => {
  let left: Array<A> = []
  return () => {
    if (left.length === 0) left = [...items]
    return left.splice(between(0, left.length - 1), 1)[0]!
  }
}

/** Lets the chain go on until a condition holds. */
const liveUntil = (exchange: Exchange, what: string, condition: () => boolean) => {
  const step = Effect.map(exchange.left, ({ open }) => {
    if (open < MOST_OPEN) exchange.life.step()
  })
  const live = step.pipe(Effect.andThen(Effect.sleep(LIFE_MS)), Effect.forever)
  return Effect.raceFirst(waitUntil(what, condition), live)
}

/** Kills a runner at a point: whichever comes to it, or both. */
const killAt = Effect.fnUntraced(function* (exchange: Exchange, point: string, { between }: Choices) {
  const { runners, arm, open } = exchange
  const [first, second] = runners
  const passing = between(1, 3)
  yield* open
  // Something is parked when a runner was killed in a call that is never repeated: by the other one.
  const parks = point.startsWith("action-park:")
  const isSet = [
    yield* arm(first!, { point: parks ? "letter:during" : point, passing, fate: "kill" }),
    yield* arm(second!, { point, passing: parks ? 1 : passing, fate: "kill" }),
  ]
  // One that came to its last failpoint before is killed already.
  if (isSet.includes(false)) return
  yield* liveUntil(exchange, `a runner comes to ${point}`, () => {
    return second!.hasEnded() || (first!.hasEnded() && !parks)
  })
})

/** Kills a runner at any moment, also while it starts. */
const killAnywhen = Effect.fnUntraced(function* (exchange: Exchange, { between, chance }: Choices) {
  if (chance(0.8)) yield* exchange.open
  const [first, second] = exchange.runners
  yield* Effect.raceFirst(
    Effect.sleep(between(0, 400)),
    liveUntil(exchange, "it lives", () => false),
  )
  yield* (chance(0.5) ? first! : second!).kill
  if (chance(0.2)) yield* Effect.all([first!.kill, second!.kill])
})

const killOften = Effect.fnUntraced(function* (database: Database, stream: number) {
  const random = choices(stream)
  const exchange = yield* setUpExchange(database, random)
  const next = drawing(points, random)
  let kills = 0
  let judged = 0
  for (let round = 0; kills < KILLS; round++) {
    yield* (round % 3 === 2 ? killAnywhen(exchange, random) : killAt(exchange, next(), random)).pipe(
      Effect.catchDefect((cause) =>
        Effect.flatMap(exchange.look, (seen) => Effect.die(new Error(`${String(cause)}\n${seen}`, { cause }))),
      ),
    )
    kills += yield* exchange.relaunch
    if (random.chance(0.1)) yield* exchange.bank.restart
    if (kills - judged < JUDGED_EVERY && kills < KILLS) continue
    judged = kills
    const { faults, ...verdict } = yield* exchange.settled
    console.info(`seed ${seed}, ${database.url.split(":")[0]}: ${kills} kills, ${JSON.stringify(verdict)}`)
    assert.deepStrictEqual(faults, [])
    assert.isAbove(verdict.reversals, 0)
  }
})

describe.concurrent(`an exchange whose runners are killed (BLOCKWATCHER_TEST_SEED=${seed})`, () => {
  it.live(
    `${KILLS} times over SQLite holds what the final chain says, and asked the bank for everything once`,
    () =>
      Effect.gen(function* () {
        yield* killOften(yield* sqliteDatabase(join(yield* temporaryFolder, "exchange.db")), 1)
      }),
    TIMEOUT_MS,
  )

  it.live(
    `${KILLS} times over PostgreSQL holds what the final chain says, and asked the bank for everything once`,
    () =>
      Effect.gen(function* () {
        yield* killOften(yield* postgresDatabase(yield* postgres, "exchange"), 2)
      }),
    TIMEOUT_MS,
  )
})
