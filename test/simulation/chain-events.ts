import type { ChainView } from "../../server/devnet/simulated/view.ts"
import type { Random } from "../../server/devnet/simulated/random.ts"
import type { ChainEvent } from "./schedule.ts"
import { DEEPEST } from "./setup.ts"
import { nextLogs, nextLogsOfFactory } from "./traffic.ts"
import type { World } from "./world.ts"

const logsIn = ({ providers }: World, random: Random) =>
  providers === null ? () => nextLogs(random) : (block: number) => nextLogsOfFactory(random, block)

/** Lets the chain grow, and time go on for those who serve it. */
export const mine = (world: World, random: Random, blocks: number): void => {
  world.providers?.step()
  world.chain.mine(blocks, logsIn(world, random))
}

/** A fork that may be returned to: it parts from the chain no deeper than the journal reaches. */
export const isNear = ({ chain }: World, fork: ChainView): boolean => {
  const shared = fork.fromGenesis.findLastIndex((block) => chain.isCanonical(block))
  return chain.head.number - shared <= DEEPEST
}

/** Does at once what an event does to the chain; answers the fork that is to be returned to, if there is one. */
export const happen = (world: World, random: Random, event: ChainEvent): ChainView | null => {
  const { chain } = world
  if (event._tag === "Mine") {
    mine(world, random, event.blocks)
    return null
  }
  const depth = Math.min(event.depth, chain.head.number - 1)
  if (depth < 1) return null
  const before = chain.fork()
  chain.reorg(depth, { length: depth + event.longer, logs: event.same ? "same" : logsIn(world, random) })
  world.log(`${event._tag} of ${depth} blocks: head ${chain.head.number} ${chain.head.hash.slice(0, 10)}`)
  return event._tag === "Flip" ? before : null
}

/** Returns to a fork, and grows there beyond what was. */
export const flipBack = (world: World, random: Random, fork: ChainView): void => {
  const { chain } = world
  const head = chain.head.number
  if (!isNear(world, fork)) return
  chain.switchTo(fork)
  mine(world, random, Math.max(0, head - chain.head.number) + random.between(0, 2))
  world.log(`back on the other fork: head ${chain.head.number} ${chain.head.hash.slice(0, 10)}`)
}
