import { assert, describe, it } from "@effect/vitest"
import { Effect, References } from "effect"
import { type Choices, choices, isSoak, seed } from "../../../system/seed.ts"
import { drawFocus, drawMutation, KINDS, type Mutation, outcomeOf, revisionsOf } from "./mutation.ts"
import { type EndState, makeWorld, REFUSING, type World } from "./world.ts"

/** Every kind of mutation against every other, and against its own. */
const KIND_PAIRS = Array.from({ length: KINDS }, (_, a) =>
  Array.from({ length: KINDS - a }, (_, b) => [a, a + b] as const),
).flat()

/** One pair alone, run again and again, because its moments are not those of the first time. */
const only = process.env["BLOCKWATCHER_TEST_PAIR"]
/** Every pair in a soak, several times over; every other one in a plain run. */
const PAIRS =
  only === undefined
    ? isSoak
      ? Array.from({ length: 1_000 }, (_, i) => i)
      : [...KIND_PAIRS.keys()].filter((pair) => (pair + seed) % 2 === 0)
    : Array(50).fill(Number(only))
const TIMEOUT_MS = isSoak ? 3_600_000 : 600_000

type Order = (first: Effect.Effect<string>, second: Effect.Effect<string>, world: World) => Effect.Effect<Outcomes>
type Outcomes = readonly [string, string]

interface End extends EndState {
  readonly outcomes: Outcomes
}

/** A fresh world, brought to where the race begins; what is drawn is the same each time. */
const prepare = Effect.fnUntraced(function* (random: Choices, kinds: readonly [number, number]) {
  const world = yield* makeWorld
  yield* world.quiet
  const steps = random.between(0, 4)
  for (let step = 0; step < steps; step++) {
    yield* outcomeOf(drawMutation(random, random.between(0, KINDS - 1), drawFocus(random), new Map()), world)
    yield* world.quiet
  }
  const revisions = yield* Effect.orDie(revisionsOf(world))
  const focus = drawFocus(random)
  return {
    world,
    pair: [drawMutation(random, kinds[0], focus, revisions), drawMutation(random, kinds[1], focus, revisions)] as const,
  }
})

/**
 * What was matched and is held of what a discard gave up is left out: how far it had come depends on the moment. So does
 * whether a network had begun that lost its only monitor so.
 */
const comparable = (end: End, pair: ReadonlyArray<Mutation>): End => {
  const given = new Set(pair.map(({ discards }) => discards))
  const isGiven = (sink: string, key: string) => given.has(sink) || key.split("/").some((id) => given.has(id))
  const isIdle = (id: string) => !end.definitions.monitors.some(({ network }) => network === id)
  const gaveUp = pair.some(({ discards }) => discards !== null)
  return {
    ...end,
    matches: end.matches.filter((key) => !isGiven("", key)),
    networks: end.networks.map((network) =>
      gaveUp && isIdle(network.id) ? { ...network, state: "STARTING", checkpoint: null } : network,
    ),
    held: Object.fromEntries(
      Object.entries(end.held).map(([sink, keys]) => [sink, keys.filter((key) => !isGiven(sink, key))]),
    ),
  }
}

interface Ended {
  readonly end: End
  readonly names: string
  /** Whether one of the two is done letter by letter, so that each letter by itself ends as in one of the orders. */
  readonly eachLetter: boolean
}

const endOf = (stream: number, order: Order): Effect.Effect<Ended> =>
  Effect.gen(function* () {
    const { world, pair } = yield* prepare(choices(stream), KIND_PAIRS[stream % KIND_PAIRS.length]!)
    const [first, second] = pair
    const outcomes = yield* order(outcomeOf(first, world), outcomeOf(second, world), world)
    yield* world.quiet
    const definitions = yield* world.definitions
    yield* world.goOn
    const end = { outcomes, definitions, ...(yield* world.standing) }
    return {
      end: comparable(end, pair),
      names: `${first.name}\n${second.name}`,
      eachLetter: pair.some((mutation) => mutation.eachLetter === true),
    }
  }).pipe(Effect.scoped, Effect.orDie)

/** The two orders: the second comes when the first has had all its effects, or right behind it. */
const orders: Readonly<Record<string, Order>> = {
  inOrder: Effect.fnUntraced(function* (first, second, { quiet }) {
    const one = yield* first
    yield* quiet
    return [one, yield* second]
  }),
  inReverse: Effect.fnUntraced(function* (first, second, { quiet }) {
    const two = yield* second
    yield* quiet
    return [yield* first, two]
  }),
  inOrderAtOnce: Effect.fnUntraced(function* (first, second) {
    return [yield* first, yield* second]
  }),
  inReverseAtOnce: Effect.fnUntraced(function* (first, second) {
    const two = yield* second
    return [yield* first, two]
  }),
}

/** Both at once, or one a few steps behind the other. */
const atOnce = (random: Choices): Order => {
  const steps = random.chance(0.5) ? 0 : random.between(1, 60)
  const late = Effect.forEach(Array(steps), () => Effect.yieldNow, { discard: true })
  const firstIsLate = random.chance(0.5)
  return (first, second) =>
    Effect.all(
      [firstIsLate ? Effect.andThen(late, first) : first, firstIsLate ? second : Effect.andThen(late, second)],
      {
        concurrency: "unbounded",
      },
    )
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** An end apart from what became of each letter, and that. */
const letterByLetter = ({ held: { [REFUSING]: taken = [], ...held }, networks, ...end }: End) => ({
  rest: { ...end, held, networks: networks.map((network) => ({ ...network, dead: [] })) },
  letters: new Set([...taken, ...networks.flatMap(({ id, dead }) => dead.map((letter) => `${id} ${letter}`))]),
})

/** Whether an end is that of the orders but for letters, each of which ended as in one of them. */
const isBetween = (end: End, orders: ReadonlyArray<End>): boolean => {
  const { rest, letters } = letterByLetter(end)
  const alike = orders.map(letterByLetter).filter((order) => same(order.rest, rest))
  const [first, ...others] = alike.map((order) => order.letters)
  if (first === undefined) return false
  const always = others.reduce((all, some) => all.intersection(some), first)
  const ever = others.reduce((all, some) => all.union(some), first)
  return always.isSubsetOf(letters) && letters.isSubsetOf(ever)
}

describe(`two mutations at once (BLOCKWATCHER_TEST_SEED=${seed})`, () => {
  it.live(
    `end as one of their two orders, ${PAIRS.length} pairs`,
    () =>
      Effect.gen(function* () {
        const failed: Array<number> = []
        for (const [round, pair] of PAIRS.entries()) {
          const { end, names, eachLetter } = yield* endOf(pair, atOnce(choices(1_000_000 + pair + round * 1_009)))
          const ends: Record<string, End> = { atOnce: end }
          for (const [name, order] of Object.entries(orders)) {
            ends[name] = (yield* endOf(pair, order)).end
            if (same(end, ends[name])) break
          }
          const { atOnce: _, ...inSomeOrder } = ends
          if (Object.values(inSomeOrder).some((other) => same(end, other))) continue
          if (eachLetter && isBetween(end, Object.values(inSomeOrder))) continue
          failed.push(pair)
          console.error(
            `BLOCKWATCHER_TEST_SEED=${seed} BLOCKWATCHER_TEST_PAIR=${pair}\n${names}\n` +
              Object.entries(ends)
                .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
                .join("\n"),
          )
        }
        assert.deepStrictEqual(failed, [])
      }).pipe(Effect.provideService(References.MinimumLogLevel, "None")),
    TIMEOUT_MS,
  )
})
