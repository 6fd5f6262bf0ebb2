import { FAULT_KINDS, type FaultKind } from "../../server/devnet/simulated/catalog.ts"
import type { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import type { NodeFault } from "../../server/devnet/simulated/fault.ts"
import * as logs from "../../server/devnet/simulated/faults/logs.ts"
import * as sockets from "../../server/devnet/simulated/faults/sockets.ts"
import * as transport from "../../server/devnet/simulated/faults/transport.ts"
import { type Filter, logsOf, type MethodAnswer } from "../../server/devnet/simulated/methods.ts"
import { Mischief } from "../../server/devnet/simulated/mischief.ts"
import type { SimulatedNode } from "../../server/devnet/simulated/node.ts"
import { Random } from "../../server/devnet/simulated/random.ts"
import type { ChainView, PlacedLog } from "../../server/devnet/simulated/view.ts"
import { childOf } from "./oracle.ts"

/** The nodes of a world in which they fail and lie. */
export interface Lineup {
  readonly nodes: 2 | 3
  /** What nodes leave out is found in receipts; without it, none leaves out what blooms may not show. */
  readonly audit: boolean
  readonly socket: boolean
}

/** Of so many seeds two play such a world, the others one with a single node. */
const SHARE = 6

export const hasProviders = (seed: number): boolean => seed % SHARE >= SHARE - 2

export const lineupOf = (seed: number): Lineup | null => {
  if (!hasProviders(seed)) return null
  const random = new Random(seed, "lineup")
  return { nodes: random.pick([2, 3, 3]), audit: random.chance(0.75), socket: random.chance(0.5) }
}

/** Blocks of an earlier run, by their hashes, that a run compares again with receipts. */
const COMPARED_AGAIN = 64

/** The deepest that a node's own fork lies below the head when it begins. */
const OWN_FORK_DEPTH = 4

/** Steps that a fault lasts. */
const LASTS = [2, 9] as const

const found = (make: FaultKind["make"]): FaultKind => ({ make, isFound: true })

const nameOf = ({ make }: FaultKind): string => make(new Random(0, "names")).name

/** Those whose waits are real ones are played in short, and a node that has no receipts has none for good. */
const REPLACED = new Set(["slow", "socket-late", "lacks-method"])

/** What hides logs where no bloom shows it. */
const HIDING = new Set(["omits-logs", "empty-logs", "zero-blooms"])

const KINDS: ReadonlyArray<FaultKind> = [
  ...FAULT_KINDS.filter((kind) => kind.isFound && !REPLACED.has(nameOf(kind))),
  found((random) => transport.slow(random.between(2, 10))),
  found((random) => sockets.lateSockets(random.between(5, 50))),
  found((random) => transport.lacksMethod(random.pick(["eth_getLogs", "eth_subscribe"]))),
]

/** The one fault that makes late finds is to come often where they are looked for. */
const OMITTING = found((random) => logs.omitsLogs(random.between(0, 1_000_000), 0.2 + 0.5 * random.next()))

/** So many times as often as any other. */
const OMITTING_WEIGHT = 20

/** @param watched makes faults of a kind known */
const kindsOf = ({ audit }: Lineup, watched: (kind: FaultKind) => FaultKind): ReadonlyArray<FaultKind> => {
  if (!audit) return KINDS.filter((kind) => !HIDING.has(nameOf(kind))).map(watched)
  const others = KINDS.filter((kind) => nameOf(kind) !== "omits-logs").map(watched)
  return [...others, ...Array<FaultKind>(OMITTING_WEIGHT).fill(watched(OMITTING))]
}

const keyOfLog = (hash: string, index: number): string => `${hash} ${index}`

/** Several nodes over one chain, of which all but one misbehave at times, each in its own way; and what they told wrongly. */
export class Providers {
  readonly lineup: Lineup
  readonly nodes: ReadonlyArray<SimulatedNode>
  readonly #chain: SimulatedChain
  readonly #mischief: Mischief
  readonly #log: (text: string) => void
  /** Logs that some node left out of an answer. */
  readonly #leftOut = new Map<string, PlacedLog>()
  /** Contracts of the factory, of which a node left out the creation. */
  readonly #hiddenChildren = new Set<string>()
  /** Logs that a match was told of. */
  readonly #heard = new Set<string>()
  readonly #heardChildren = new Set<string>()
  /** What no run compares any more: it may never be found. */
  readonly #givenUp = new Set<string>()
  readonly #invented: Array<ChainView> = []
  /** Where nodes told of forks of their own: from a block to another. */
  readonly #contested = new Map<NodeFault, { readonly from: number; to: number }>()

  constructor(options: {
    readonly seed: number
    readonly lineup: Lineup
    readonly chain: SimulatedChain
    readonly nodes: ReadonlyArray<SimulatedNode>
    readonly log: (text: string) => void
  }) {
    const { seed, lineup, chain, nodes, log } = options
    this.lineup = lineup
    this.nodes = nodes
    this.#chain = chain
    this.#log = log
    this.#mischief = new Mischief(nodes, {
      random: new Random(seed, "faults"),
      kinds: kindsOf(lineup, (kind) => ({ ...kind, make: (random) => this.#watched(kind.make(random)) })),
      most: nodes.length - 1,
      lasts: LASTS,
    })
  }

  /** What a network's config says of them. */
  get config() {
    const { audit, socket } = this.lineup
    return {
      urls: this.nodes.map(({ url }) => url),
      poll_interval_ms: 100,
      ...(audit ? { audit: "receipts" as const } : {}),
      ...(socket ? { ws_url: this.nodes.at(-1)!.wsUrl } : {}),
    }
  }

  /** Time goes on: faults end and begin. */
  step(): void {
    for (const { node, fault, began } of this.#mischief.step()) {
      this.#log(`node ${this.nodes.indexOf(node)} ${began ? fault.says : `is well again (${fault.name})`}`)
      const { number } = this.#chain.head
      if (!began) this.#endContest(fault)
      else if (fault.name === "own-fork")
        this.#contested.set(fault, { from: number - OWN_FORK_DEPTH, to: Number.POSITIVE_INFINITY })
    }
  }

  /** All are well from now on. */
  heal(): void {
    for (const { fault } of this.#mischief.heal()) this.#endContest(fault)
  }

  /** One that may stay behind for a while: it is already wrong, if any is. */
  get staleNode(): SimulatedNode {
    return this.#mischief.active[0]?.node ?? this.nodes[0]!
  }

  /** Whether the node at a port is wrong now. */
  isWrong(port: number): boolean {
    return this.#mischief.active.some(({ node }) => node.port === port)
  }

  /** What is wrong now, for a person. */
  get wrong(): string {
    return this.#mischief.active.map(({ node, fault }) => `node ${this.nodes.indexOf(node)} ${fault.says}`).join("; ")
  }

  /** Whether some node served a fork of its own at any of these heights: what it told may have been believed for a while. */
  isContested(first: number, last: number): boolean {
    return [...this.#contested.values()].some(({ from, to }) => from <= last && first <= to)
  }

  #endContest(fault: NodeFault): void {
    const contest = this.#contested.get(fault)
    if (contest !== undefined) contest.to = this.#chain.head.number
  }

  /** Whether both are blocks of one fork that a node invented. */
  areOnOneInventedFork(hash: string, other: string): boolean {
    return this.#invented.some((fork) => fork.areOnOneFork(hash, other))
  }

  /** A match of this log was told. */
  heard(hash: string, index: number): void {
    this.#heard.add(keyOfLog(hash, index))
    const address = this.#addressOf(hash, index)
    if (address !== undefined && this.#hiddenChildren.has(address)) this.#heardChildren.add(address)
  }

  /** Whether a log may be found late: some node left it out, or the creation of its contract. */
  mayBeLate(hash: string, index: number): boolean {
    if (!this.lineup.audit) return false
    return this.#leftOut.has(keyOfLog(hash, index)) || this.#hiddenChildren.has(this.#addressOf(hash, index) ?? "")
  }

  /** Every log of any fork that some node left out. */
  get leftOut(): ReadonlyArray<PlacedLog> {
    return this.lineup.audit ? [...this.#leftOut.values()] : []
  }

  /** Whether a log may never be found: a node left it out, and no run compared it until it was too old for that. */
  mayBeMissing(hash: string, index: number): boolean {
    return this.#givenUp.has(keyOfLog(hash, index)) || this.#givenUp.has(this.#addressOf(hash, index) ?? "")
  }

  /** A run begins, which knows the hashes of these blocks, newest first: what is older is not compared again. */
  runBegins(known: ReadonlyArray<number>): void {
    if (known.length === 0) return
    const compared = known.slice(0, -1).slice(0, COMPARED_AGAIN)
    const from = compared.at(-1) ?? Number.POSITIVE_INFINITY
    for (const [key, { block, log }] of this.#leftOut) {
      if (block >= from) continue
      const child = childOf(log)
      if (child !== null && !this.#heardChildren.has(child)) this.#givenUp.add(child)
      if (!this.#heard.has(key)) this.#givenUp.add(key)
    }
  }

  #addressOf(hash: string, index: number): string | undefined {
    return this.#chain.byHash(hash)?.logs[index]?.address
  }

  /** A fault whose lies are noted. */
  #watched(fault: NodeFault): NodeFault {
    const { view } = fault
    return {
      ...fault,
      ...(view === undefined || fault.name !== "own-fork"
        ? {}
        : {
            view: (shown) => {
              const seen = view(shown)
              if (this.#invented.at(-1) !== seen.chain) this.#invented.push(seen.chain)
              return seen
            },
          }),
      answer: (call, shown, given) => {
        const answered = fault.answer?.(call, shown, given) ?? given()
        if (call.method === "eth_getLogs") this.#noteLeftOut(call.params[0], answered)
        return answered
      },
    }
  }

  /** Compares an answer about logs with the chain. */
  #noteLeftOut(filter: Filter, answered: MethodAnswer): void {
    if (!("result" in answered) || !Array.isArray(answered.result)) return
    const has = new Set(
      answered.result.map(({ blockHash, logIndex }) =>
        keyOfLog(String(blockHash).toLowerCase(), Number(String(logIndex).toLowerCase())),
      ),
    )
    const blocks =
      filter.blockHash === undefined
        ? this.#chain.fromGenesis.slice(Number(filter.fromBlock), Number(filter.toBlock) + 1)
        : [this.#chain.byHash(filter.blockHash)]
    for (const block of blocks) {
      if (block === undefined) continue
      const { number, hash } = block
      for (const { logIndex } of logsOf({ blockTimestamps: false }, block, filter)) {
        const index = Number(logIndex)
        const key = keyOfLog(hash, index)
        if (has.has(key) || this.#leftOut.has(key)) continue
        const log = block.logs[index]!
        this.#leftOut.set(key, { block: number, hash, index, log })
        const child = childOf(log)
        if (child !== null) this.#hiddenChildren.add(child)
      }
    }
  }
}
