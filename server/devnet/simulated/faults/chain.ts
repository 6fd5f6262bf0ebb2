import { createHash } from "node:crypto"
import type { NodeFault } from "../fault.ts"
import { answer, headOf, type View } from "../methods.ts"
import { shareOf } from "../random.ts"
import type { ChainView, SimulatedBlock } from "../view.ts"
import { asksForHead, onBlocks } from "./answers.ts"

/** Is so many blocks behind. */
export const staysBehind = (blocks = 25): NodeFault => ({
  name: "stays-behind",
  says: `is ${blocks} blocks behind`,
  view: (view) => ({ ...pick(view), lag: view.lag + blocks }),
})

const pick = ({ chain, lag, blockTimestamps, tags }: View): View => ({ chain, lag, blockTimestamps, tags })

/** Shows the chain for ever as it was when this was first asked. */
export const standsStill = (): NodeFault => {
  let then: ChainView | undefined
  return {
    name: "stands-still",
    says: "stands still at an old head",
    view: (view) => ({ ...pick(view), chain: (then ??= view.chain.replacedBy([])) }),
  }
}

/** Several machines behind one address: one tells the head, and one that is behind answers the rest. */
export const twoMachines = (blocks = 25): NodeFault => ({
  name: "two-machines",
  says: `tells its head, and answers everything else from a machine ${blocks} blocks behind`,
  answer: (call, view, given) =>
    asksForHead(call) ? given() : answer({ ...pick(view), lag: view.lag + blocks }, call.method, call.params),
})

export const headJumps = (by = 3): NodeFault => ({
  name: "head-jumps",
  says: `shows every ${by}rd block as it comes, and those before it together with it`,
  view: (view) => ({ ...pick(view), lag: view.lag + (headOf(view) % by) }),
})

/** Every other answer about the head is an old one: heads come twice, late, and lower than before. */
export const headFlickers = (blocks = 2): NodeFault => {
  let asked = 0
  return {
    name: "head-flickers",
    says: "tells its newest block and an older one in turn",
    answer: (call, view, given) =>
      asksForHead(call) && asked++ % 2 === 1
        ? answer({ ...pick(view), lag: view.lag + blocks }, call.method, call.params)
        : given(),
  }
}

/** Claims a head that no chain has. */
export const inventedHead = (ahead = 1000): NodeFault => ({
  name: "invented-head",
  says: `claims a head ${ahead} blocks above the chain's`,
  answer: (call, view, given) => {
    if (!asksForHead(call)) return given()
    const number = `0x${(headOf(view) + ahead).toString(16)}`
    if (call.method === "eth_blockNumber") return { result: number }
    const { result } = given() as { readonly result: object }
    return { result: { ...result, number, hash: otherHash(`${number} head`), parentHash: otherHash(number) } }
  },
})

const otherHash = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`

/** Knows no block by its hash. */
export const unknownHashes = (): NodeFault => ({
  name: "unknown-hashes",
  says: "knows no block by its hash",
  answer: ({ method, params }, _, given) => {
    if (method === "eth_getBlockByHash") return { result: null }
    return method === "eth_getLogs" && params[0].blockHash !== undefined
      ? { error: { code: -32000, message: "unknown block" } }
      : given()
  },
})

/** Now and then its head has a hash of its own. */
export const otherHashes = (seed: number, share = 0.3): NodeFault => {
  let asked = 0
  return {
    name: "other-hashes",
    says: "answers its head with another hash now and then",
    answer: (call, view, given) =>
      call.method === "eth_getBlockByNumber" && asksForHead(call) && shareOf(`${seed} ${asked++}`) < share
        ? onBlocks((block) => ({ ...block, hash: otherHash(`${String(block["hash"])} ${seed}`) }))(call, view, given)
        : given(),
  }
}

/** Serves a fork of its own invention that begins so many blocks below the head at the time, and goes on with the chain. */
export const ownFork = (seed: number, depth = 3): NodeFault => {
  let first: number | undefined
  let made: { readonly head: string; readonly fork: ChainView } | undefined
  const twist = (chain: ChainView, begin: number): ChainView => {
    const blocks: Array<SimulatedBlock> = []
    for (let number = begin; number <= chain.head.number; number++) {
      const block = chain.at(number)!
      const parentHash = blocks.at(-1)?.hash ?? block.parentHash
      blocks.push({ ...block, parentHash, hash: otherHash(`${block.hash} ${parentHash} ${seed}`) })
    }
    return chain.replacedBy(blocks)
  }
  return {
    name: "own-fork",
    says: `serves a fork of its own, ${depth} blocks deep when it began`,
    view: (view) => {
      const { chain } = view
      first ??= Math.max(1, chain.head.number - depth + 1)
      if (made?.head !== chain.head.hash) made = { head: chain.head.hash, fork: twist(chain, first) }
      return { ...pick(view), chain: made.fork }
    },
  }
}

/** Serves another chain under another id. */
export const otherChain = (chain: ChainView): NodeFault => ({
  name: "other-chain",
  says: `serves chain ${chain.chainId}`,
  view: (view) => ({ ...pick(view), chain }),
})

const lowestOf = (params: ReadonlyArray<any>): number =>
  Number(typeof params[0] === "object" ? (params[0].fromBlock ?? Number.NaN) : params[0])

/** Has no blocks below one, and says it or answers as if there were nothing in them. */
export const pruned = (below: number, says: "nothing" | "an error" = "nothing"): NodeFault => ({
  name: says === "nothing" ? "pruned-silently" : "pruned",
  says:
    says === "nothing"
      ? `lacks what is below block ${below}, and answers as if nothing were there`
      : `lacks what is below block ${below}, and says so`,
  answer: ({ method, params }, _, given) => {
    const asked = lowestOf(params)
    if (!(asked < below)) return given()
    if (says === "an error")
      return {
        error: {
          code: -32000,
          message: `height is not available (requested height: ${asked}, base height: ${below})`,
        },
      }
    if (method !== "eth_getLogs") return { result: null }
    const { result } = given() as { readonly result: ReadonlyArray<any> }
    return { result: result.filter(({ blockNumber }) => Number(blockNumber) >= below) }
  },
})

/** Does not know `safe` and `finalized`; by default says that they are bad, else answers that they are not there. */
export const unknownTags = (answered: "an error" | "null" = "an error"): NodeFault => ({
  name: "unknown-tags",
  says: "does not know the blocks `safe` and `finalized`",
  answer: ({ params }, _, given) => {
    if (params[0] !== "safe" && params[0] !== "finalized") return given()
    return answered === "null"
      ? { result: null }
      : { error: { code: -32602, message: `invalid block tag ${params[0]}` } }
  },
})

/** Every other answer about `safe` and `finalized` is so many blocks lower. */
export const tagsGoDown = (blocks = 10): NodeFault => {
  let asked = 0
  return {
    name: "tags-go-down",
    says: "tells lower `safe` and `finalized` blocks in between",
    answer: (call, view, given) => {
      const tag = call.params[0]
      const number = tag === "safe" ? view.chain.safe : tag === "finalized" ? view.chain.finalized : null
      if (number === null || asked++ % 2 === 0) return given()
      return answer(view, call.method, [`0x${Math.max(0, number - blocks).toString(16)}`, ...call.params.slice(1)])
    },
  }
}

const ofOtherBlock = (receipt: object) => ({ ...receipt, blockHash: otherHash("receipts") })

/** Answers the receipts of another block. */
export const otherReceipts = (): NodeFault => ({
  name: "other-receipts",
  says: "answers receipts of another block",
  answer: ({ method }, _, given) => {
    const one = given()
    if (!("result" in one) || one.result === null) return one
    if (method === "eth_getTransactionReceipt") return { result: ofOtherBlock(one.result as object) }
    if (method === "eth_getBlockReceipts") return { result: (one.result as ReadonlyArray<object>).map(ofOtherBlock) }
    return one
  },
})
