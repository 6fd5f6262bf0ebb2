import { CUSTOMERS } from "../../../examples/exchange/customers.ts"
import type { SimulatedChain } from "../../../server/devnet/simulated/chain.ts"
import { HOLDERS, logOf } from "../../../server/devnet/simulated/token-logs.ts"
import type { ChainView, LogSpec } from "../../../server/devnet/simulated/view.ts"
import type { Choices } from "../seed.ts"

/** Forks are returned to while they are no further back than so many blocks, which the journal holds. */
const DEEPEST = 12

const KEPT_FORKS = 4

/** More than any integer of a database or of JavaScript holds. */
const HUGE = 2n ** 200n

/** Transfers of one block: mostly deposits, one in five to somebody who is no customer. */
const transfersOf = ({ between, chance }: Choices): ReadonlyArray<LogSpec> =>
  Array.from({ length: between(1, 3) }, () => {
    const value = chance(0.3) ? HUGE + BigInt(between(0, 1_000_000)) : BigInt(between(1, 1_000_000))
    const to = HOLDERS[chance(0.2) ? between(CUSTOMERS.size, HOLDERS.length - 1) : between(0, CUSTOMERS.size - 1)]!
    return logOf({ kind: "transfer", from: HOLDERS[4]!, to, value })
  })

/** Lets a chain go on: blocks, reorganisations, and returns to forks that were left. */
export const makeChainLife = (chain: SimulatedChain, choices: Choices) => {
  const { between, chance } = choices
  const forks: Array<ChainView> = []
  const logs = () => transfersOf(choices)

  const remember = () => {
    forks.push(chain.fork())
    if (forks.length > KEPT_FORKS) forks.shift()
  }

  const mine = () => void chain.mine(between(1, 2), logs)

  const reorganise = (deepest = between(1, 5)) => {
    const depth = Math.min(deepest, chain.head.number - 1)
    remember()
    chain.reorg(depth, { length: depth + between(0, 2), logs: chance(0.3) ? "same" : logs })
  }

  const flipBack = () => {
    const near = forks.filter((fork) => {
      const shared = fork.fromGenesis.findLastIndex((block) => chain.isCanonical(block))
      return chain.head.number - shared <= DEEPEST && fork.head.number - shared <= DEEPEST
    })
    const fork = near[between(0, near.length - 1)]
    if (fork === undefined) return mine()
    remember()
    chain.switchTo(fork).mine(between(0, 2), logs)
  }

  return {
    mine,
    reorganise,
    flipBack,
    /** One thing that happens to a chain. */
    step: () => {
      const which = choices.next()
      return which < 0.6 ? mine() : which < 0.8 ? reorganise() : flipBack()
    },
    /** Makes the present fork the longest that there ever was. */
    outgrow: () => {
      const highest = Math.max(...forks.map(({ head }) => head.number))
      chain.mine(Math.max(1, highest - chain.head.number + 1), logs)
    },
  }
}
