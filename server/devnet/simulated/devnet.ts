import { Clock, Effect, Random as EffectRandom, type Scope } from "effect"
import type { Address } from "viem"
import { DevnetError } from "../error.ts"
import { TOKEN_ADDRESS } from "../token.ts"
import { movesOf } from "../traffic.ts"
import { FAULT_KINDS } from "./catalog.ts"
import { SimulatedChain } from "./chain.ts"
import { type Change, Mischief } from "./mischief.ts"
import { SimulatedNode } from "./node.ts"
import { Random } from "./random.ts"
import { HOLDERS, logOf } from "./token-logs.ts"
import type { LogSpec } from "./view.ts"

/** How much goes wrong: nothing; at two providers at most what can be found out; at all of them anything. */
export const FAULT_LEVELS = ["none", "some", "all"] as const
export type FaultLevel = (typeof FAULT_LEVELS)[number]

/** A chain in memory, and the providers that serve it. */
export interface SimulatedDevnet {
  readonly chainId: 31337
  readonly urls: ReadonlyArray<string>
  readonly token: Address
}

export interface SimulatedOptions {
  readonly faults: FaultLevel
  readonly seed: number
  /** Ms between two blocks; a second unless told. */
  readonly blockMs?: number
}

const CHAIN_ID = 31_337 as const
const USUAL_PORT = 8545
const PROVIDERS = 3

/** Blocks that are kept: those of some hours, so that a devnet that runs for days does not grow. */
const KEPT_BLOCKS = 10_000

/** Blocks that the chain begins with. */
const FIRST_BLOCKS = 100

/** Blocks between two reorganisations, and how deep they are. */
const REORG_EVERY = [30, 90] as const
const REORG_DEPTH = [1, 3] as const

/** Blocks that a fault lasts. */
const FAULT_LASTS = [10, 45] as const

const [SAFE_DEPTH, FINALIZED_DEPTH] = [8, 16]

const startNode = (chain: SimulatedChain, port: number): Effect.Effect<SimulatedNode, DevnetError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => SimulatedNode.start(chain, port),
      catch: (error) => new DevnetError({ reason: `a simulated provider cannot listen: ${String(error)}` }),
    }),
    (node) => Effect.promise(() => node.stop()),
  )

const mischiefOf = (nodes: ReadonlyArray<SimulatedNode>, { faults, seed }: SimulatedOptions): Mischief | null => {
  if (faults === "none") return null
  return new Mischief(nodes, {
    random: new Random(seed, "faults"),
    kinds: faults === "all" ? FAULT_KINDS : FAULT_KINDS.filter(({ isFound }) => isFound),
    most: faults === "all" ? nodes.length : nodes.length - 1,
    lasts: FAULT_LASTS,
  })
}

/** What has changed, and what is wrong since. */
const tellChanges = (changes: ReadonlyArray<Change>, mischief: Mischief) =>
  Effect.gen(function* () {
    for (const { node, fault, began } of changes)
      yield* Effect.logInfo(
        `devnet: provider ${node.port} ${began ? `now ${fault.says}` : "is well again"} (${fault.name})`,
      )
    const wrong = mischief.active.map(({ node, fault }) => `${node.port} ${fault.name}`).join(", ")
    yield* Effect.logInfo(`devnet: ${wrong === "" ? "all providers are well" : `what is wrong now: ${wrong}`}`)
  })

/** A block's logs: what moves the token in that second. */
const logsOf = (second: number) => Effect.map(movesOf(second, HOLDERS), (moves) => moves.map(logOf))

/** Adds a block, and marks those that are safe and finalized now. */
const mine = Effect.fnUntraced(function* (chain: SimulatedChain) {
  chain.mine(1, yield* logsOf(chain.head.number + 1))
  chain.safe = Math.max(0, chain.head.number - SAFE_DEPTH)
  chain.finalized = Math.max(0, chain.head.number - FINALIZED_DEPTH)
})

/** Replaces the newest blocks by others, which hold about half of what was there and something else. */
const reorganise = Effect.fnUntraced(function* (chain: SimulatedChain, depth: number) {
  const first = chain.head.number - depth + 1
  const blocks: Array<ReadonlyArray<LogSpec>> = []
  for (let number = first; number < first + depth; number++)
    blocks.push([
      ...(yield* Effect.filter(chain.at(number)?.logs ?? [], () => EffectRandom.nextBoolean)),
      ...(yield* logsOf(yield* EffectRandom.nextIntBetween(0, 60))),
    ])
  chain.reorg(depth, { logs: (number) => blocks[number - first]! })
  yield* Effect.logInfo(
    `devnet: ${depth === 1 ? `block ${first} was` : `blocks ${first} to ${first + depth - 1} were`} reorganised`,
  )
})

/** Mines for ever, with a fork now and then, and with each block perhaps a change of what is wrong. */
const keepMining = Effect.fnUntraced(function* (
  chain: SimulatedChain,
  mischief: Mischief | null,
  { seed, blockMs = 1000 }: SimulatedOptions,
): Effect.fn.Return<never> {
  const random = new Random(seed, "reorganisations")
  let nextReorg = chain.head.number + random.between(...REORG_EVERY)
  for (;;) {
    yield* Effect.sleep(blockMs)
    if (chain.head.number >= nextReorg) {
      yield* reorganise(chain, random.between(...REORG_DEPTH))
      nextReorg = chain.head.number + random.between(...REORG_EVERY)
    }
    yield* mine(chain)
    const changes = mischief?.step() ?? []
    if (mischief !== null && changes.length > 0) yield* tellChanges(changes, mischief)
  }
})

/**
 * Starts a chain in memory, with the token, the traffic and the reorganisations of the devnet, and three providers that
 * serve it over HTTP and WebSocket and fail or lie for a while as the seed decides. What is wrong is logged whenever it
 * changes. It ends with the scope. The first provider listens on port 8545 of 127.0.0.1, or on a free one where that is
 * taken.
 */
export const startSimulatedDevnet: (
  options: SimulatedOptions,
) => Effect.Effect<SimulatedDevnet, DevnetError, Scope.Scope> = Effect.fn("devnet.simulated")(function* (options) {
  const clock = yield* Clock.Clock
  const chain = new SimulatedChain({
    chainId: CHAIN_ID,
    seed: `${options.seed}`,
    keep: KEPT_BLOCKS,
    timestampOf: () => Math.floor(clock.currentTimeMillisUnsafe() / 1000),
  })
  const seeded = EffectRandom.withSeed(options.seed)
  yield* seeded(Effect.repeat(mine(chain), { times: FIRST_BLOCKS - 1 }))
  const first = yield* startNode(chain, USUAL_PORT).pipe(Effect.catchTag("DevnetError", () => startNode(chain, 0)))
  const others = yield* Effect.replicateEffect(startNode(chain, 0), PROVIDERS - 1)
  const nodes = [first, ...others]
  yield* Effect.forkScoped(seeded(keepMining(chain, mischiefOf(nodes, options), options)))
  return { chainId: CHAIN_ID, urls: nodes.map(({ url }) => url), token: TOKEN_ADDRESS } satisfies SimulatedDevnet
})
