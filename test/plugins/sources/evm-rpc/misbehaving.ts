import { Clock, Effect, Layer, Logger, type Scope } from "effect"
import { type Cursor, compareCursors, startOf } from "../../../../core/model/cursor.ts"
import { Egress } from "../../../../core/plugin/egress.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { InterestSet, SourceEvent } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { FAULT_KINDS, type FaultKind } from "../../../../server/devnet/simulated/catalog.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { Mischief } from "../../../../server/devnet/simulated/mischief.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { Random } from "../../../../server/devnet/simulated/random.ts"
import { addressOf, TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { fastClock } from "../../../simulation/clock.ts"
import { drive, type Driven, makeSource, outside, quick, secretsFrom, until } from "./driver.ts"

/** How many times faster than the machine's the source's clock runs. */
const SPEED = 50

/** Blocks of one run. */
const BLOCKS = 90

/** The run is looked at each so many blocks, in the middle of whatever is wrong. */
const LOOK_EVERY = 30

/** So long a block is the newest one at most, in ms of the machine. */
const BLOCK_MS = 40

const TOKENS = [1, 2, 3]
const PAYEE = addressOf(77)

/** One monitor a token, so that a bloom shows which of their logs is missing, and one of transactions. */
const interests = (withTransactions: boolean): InterestSet<Selector> => ({
  version: 1,
  interests: [
    ...TOKENS.map((token) => ({
      id: `token ${token}`,
      selector: { kind: "event" as const, event: TRANSFER, address: addressOf(token) },
    })),
    ...(withTransactions ? [{ id: "payments", selector: { kind: "transaction" as const, to: PAYEE } }] : []),
  ],
})

/** The services of the source, whose requests time out as much earlier as its clock is faster. */
const services = Layer.mergeAll(
  Layer.effect(
    Egress,
    Effect.map(Egress, (egress) =>
      Egress.of({ ...egress, request: (one) => egress.request({ ...one, timeoutMs: one.timeoutMs / SPEED }) }),
    ),
  ).pipe(Layer.provide(outside)),
  Layer.succeed(Secrets, secretsFrom({})),
  // Providers are left aside all the time, and each time that is logged.
  Logger.layer([]),
)

/** What is held of what came: what a run handed over, without what a fork took back. */
class Held {
  readonly #runs: Array<{ readonly driven: Driven; until: Cursor | null }> = []

  began(driven: Driven): void {
    this.#runs.push({ driven, until: null })
  }

  tookBack(from: Cursor): void {
    for (const run of this.#runs) if (run.until === null || compareCursors(from, run.until) < 0) run.until = from
  }

  get #standing(): ReadonlyArray<SourceEvent> {
    return this.#runs.flatMap(({ driven, until }) =>
      driven.events.filter(({ cursor }) => until === null || compareCursors(cursor, until) <= 0),
    )
  }

  get keys(): ReadonlyArray<string> {
    return this.#standing.map((event) => {
      const { block, args, kind } = event.fields() as any
      const { primary, secondary } = event.cursor
      return `${kind} ${primary}:${secondary % 2 ** 20} ${block.hash}${args === undefined ? "" : ` ${args.value}`}`
    })
  }

  get anchors() {
    return this.#runs
      .flatMap(({ driven, until }) =>
        driven.batches
          .flatMap(({ resume }) => resume)
          .filter(({ primary }) => until === null || primary <= until.primary),
      )
      .toReversed()
  }
}

const expectedOf = (chain: SimulatedChain, to: number, withTransactions: boolean): ReadonlyArray<string> => [
  ...chain
    .canonicalLogs(0, to)
    .filter(({ log }) => TOKENS.some((token) => log.address === addressOf(token)))
    .map(({ block, hash, index, log }) => `event ${block}:${index} ${hash} ${BigInt(log.data)}`),
  ...(withTransactions
    ? chain.fromGenesis
        .slice(0, to + 1)
        .flatMap(({ number, hash, transactions }) =>
          transactions.flatMap(({ to }, i) => (to === PAYEE ? [`transaction ${number}:${1 + i} ${hash}`] : [])),
        )
    : []),
]

const play = Effect.fnUntraced(function* (
  seed: number,
  trace: (text: string) => void,
  kinds: ReadonlyArray<FaultKind>,
): Effect.fn.Return<ReadonlyArray<string>, unknown, Scope.Scope | Egress | Secrets> {
  const random = new Random(seed, "blocks")
  const withTransactions = seed % 2 === 1
  const confirmations = seed % 3 === 0 ? 4 : 0
  const withSocket = seed % 4 >= 2
  const chain = new SimulatedChain({ seed: `${seed}` })
  const mine = () =>
    chain.mine(
      1,
      () => [
        ...random
          .shuffle(TOKENS)
          .slice(0, random.between(0, TOKENS.length))
          .map((token) => transfer(token, 2, 3, random.between(1, 1_000_000))),
        transfer(9, 2, 3, 4),
      ],
      () => (random.chance(0.5) ? [{ to: PAYEE, value: random.between(1, 1000) }] : []),
    )
  for (let i = 0; i < 5; i++) mine()
  const nodes = [yield* simulatedNode(chain), yield* simulatedNode(chain), yield* simulatedNode(chain)]
  const named = new Map(nodes.map((node, i) => [node, `node ${i + 1} (${node.port})`]))
  const mischief = new Mischief(nodes, { random: new Random(seed, "faults"), kinds, most: 2, lasts: [5, 40] })

  const clock = fastClock(SPEED)
  const made = yield* makeSource({
    ...quick,
    urls: nodes.map(({ url }) => url),
    ...(withSocket ? { ws_url: random.pick(nodes).wsUrl } : {}),
    poll_interval_ms: 500,
    confirmations,
  })
  const source = { ...made, run: (run: any) => Effect.provideService(made.run(run), Clock.Clock, clock) }
  const held = new Held()
  const follow = Effect.fnUntraced(function* (cursor: Cursor) {
    const { driven } = yield* drive(source, {
      cursor,
      anchors: held.anchors,
      interests: interests(withTransactions),
    })
    held.began(driven)
    return driven
  })
  let driven = yield* follow(startOf(0))
  const goOn = Effect.suspend(() => {
    const { exit, outcome } = driven
    if (exit === undefined) return Effect.void
    if (outcome?._tag !== "Invalidated") return Effect.die(new Error(`the run ended: ${JSON.stringify(exit)}`))
    trace(`taken back from ${outcome.from.primary}: ${outcome.cause}`)
    held.tookBack(outcome.from)
    return Effect.map(follow(outcome.from), (next) => void (driven = next))
  })
  const target = () => chain.head.number - confirmations
  const isAtHead = () => driven.upTo >= target() && driven.exit === undefined
  const wrong = () => mischief.active.map(({ node, fault }) => `${named.get(node)} ${fault.says}`).join("; ")

  const caughtUp = (what: string) =>
    Effect.gen(function* () {
      for (let i = 0; i < 400; i++) {
        yield* goOn
        if (isAtHead()) return []
        yield* Effect.sleep(25)
      }
      return [`${what}: at block ${driven.upTo} of ${target()} while ${wrong() || "all are well"}: ${driven.trouble}`]
    })

  const problems: Array<string> = []
  for (let step = 1; step <= BLOCKS; step++) {
    for (const { node, fault, began } of mischief.step())
      trace(`block ${chain.head.number}: ${named.get(node)} ${began ? fault.says : `is well again (${fault.name})`}`)
    if (random.chance(0.06)) {
      const depth = Math.min(random.between(1, 3), chain.head.number - 1)
      chain.reorg(depth, { length: depth - 1, logs: "same" })
      trace(`a fork of depth ${depth} at ${chain.head.number}`)
    }
    mine()
    yield* goOn
    yield* Effect.timeoutOption(until("the block is seen", isAtHead, 60), BLOCK_MS)
    if (step % LOOK_EVERY === 0) problems.push(...(yield* caughtUp(`after ${step} blocks`)))
  }
  mischief.heal()
  mine()
  mine()
  problems.push(...(yield* caughtUp("at the end")))
  const expected = expectedOf(chain, target(), withTransactions).toSorted()
  const keys = () => held.keys.toSorted()
  const settled = () => keys().join() === expected.join()
  for (let i = 0; i < 80 && !settled(); i++) {
    yield* goOn
    yield* Effect.sleep(25)
  }
  const [has, wants] = [keys(), new Set(expected)]
  const hasSet = new Set(has)
  problems.push(...expected.filter((key) => !hasSet.has(key)).map((key) => `missing: ${key}`))
  problems.push(...has.filter((key) => !wants.has(key)).map((key) => `not on the chain: ${key}`))
  if (has.length !== hasSet.size) problems.push("something was handed over twice")
  return problems
})

/**
 * Watches a chain by three nodes, of which two at most are wrong at a time, each in its own way, and answers what came
 * out wrong.
 */
export const playMisbehaving = (
  seed: number,
  trace: (text: string) => void = () => {},
  kinds = FAULT_KINDS.filter(({ isFound }) => isFound),
): Effect.Effect<ReadonlyArray<string>, unknown> => Effect.provide(Effect.scoped(play(seed, trace, kinds)), services)
