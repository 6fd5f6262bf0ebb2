import { answer } from "../../../../server/devnet/simulated/methods.ts"
import type { SimulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"

/** Three logs in each block, so that the bloom tells nothing when one is missing. */
export const three = (number: number) => [0, 1, 2].map((i) => transfer(1, 2, 3, number * 10 + i))

/** The node leaves the middle log out of its answers about these blocks. */
export const omit = (node: SimulatedNode, ...blocks: ReadonlyArray<number>) => {
  const isOmitted = (log: any) => blocks.includes(Number(log.blockNumber)) && log.logIndex === "0x1"
  node.fault = (method, params) => {
    if (method !== "eth_getLogs") return undefined
    const given = answer(node, method, params)
    return "result" in given
      ? { result: (given.result as ReadonlyArray<unknown>).filter((log) => !isOmitted(log)) }
      : given
  }
}
