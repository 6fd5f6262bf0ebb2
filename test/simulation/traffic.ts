import { created } from "../support/factory.ts"
import { transfer, transfer721 } from "../../server/devnet/simulated/transfer.ts"
import type { LogSpec } from "../../server/devnet/simulated/view.ts"
import type { Random } from "../../server/devnet/simulated/random.ts"
import { FIRST_CHILD, TOKENS } from "./setup.ts"

const NOBODY = 99

/** The logs of the next block: transfers that monitors match, and others that look like them. */
export const nextLogs = (random: Random): ReadonlyArray<LogSpec> =>
  Array.from({ length: random.pick([0, 0, 1, 1, 2, 3]) }, () => {
    const token = random.pick([TOKENS.plain, TOKENS.plain, TOKENS.other, TOKENS.gated, TOKENS.gated])
    const [from, to] = [random.between(1, 3), random.between(1, 3)]
    if (random.chance(0.05)) return transfer721(token, from, to, random.between(1, 1000))
    return transfer(random.chance(0.05) ? NOBODY : token, from, to, random.between(0, 1000))
  })

/** Blocks in which the same few contracts are spoken of: most are made near the head, where forks part. */
const GENERATION = 8

/**
 * Those of a block in a world with a factory: it makes contracts, some of them again or not at all, and what they log comes
 * before or behind that.
 */
export const nextLogsOfFactory = (random: Random, block: number): ReadonlyArray<LogSpec> => {
  const newest = FIRST_CHILD + Math.floor(block / GENERATION)
  const child = () => newest - random.pick([0, 0, 1, 2])
  const made = (): LogSpec => {
    const log = created(child())
    return random.chance(0.1) ? { ...log, data: "0x" } : log
  }
  const moved = (): LogSpec => transfer(child(), random.between(1, 3), random.between(1, 3), random.between(0, 1000))
  return random.shuffle([
    ...nextLogs(random),
    ...(random.chance(0.15) ? [made()] : []),
    ...Array.from({ length: random.pick([0, 1, 1, 2]) }, moved),
  ])
}
