import { Effect, Semaphore } from "effect"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import { sql } from "./sql.ts"

/** Keys of matches, keys of deliveries (their order in a sink), the order of dying, and keys of gates' hits. */
export type NumberName = "match" | "delivery" | "died" | "hit"

/** As the migration set the steps of the sequences. */
const BLOCK = 10_000

/**
 * Gives out numbers that grow within a network, in blocks that come from the database's sequences. Sequences never wait
 * for other transactions, and what a transaction that was rolled back took is not given out again.
 */
export interface Numbers {
  readonly take: (
    session: Session,
    name: NumberName,
    count: number,
  ) => Effect.Effect<ReadonlyArray<number>, QueryFailed>
  /**
   * Lets go of the present blocks: to be called when a network was taken over, whose last owner may have used numbers
   * from beyond them.
   */
  readonly forget: Effect.Effect<void>
}

interface Block {
  next: number
  readonly end: number
}

export const makeNumbers = (): Numbers => {
  const blocks = new Map<NumberName, Array<Block>>()
  // One at a time, or a block could come to stand before a lower one.
  const turn = Semaphore.makeUnsafe(1)

  const blocksOf = (name: NumberName): Array<Block> => {
    const present = blocks.get(name) ?? []
    blocks.set(name, present)
    return present
  }

  const draw = (from: Array<Block>, count: number): ReadonlyArray<number> => {
    const drawn: Array<number> = []
    while (drawn.length < count) {
      const block = from[0]!
      const upTo = Math.min(block.end, block.next + count - drawn.length)
      while (block.next < upTo) drawn.push(block.next++)
      if (block.next === block.end) from.shift()
    }
    return drawn
  }

  return {
    take: (session, name, count) =>
      count === 0
        ? Effect.succeed([])
        : turn.withPermits(1)(
            Effect.gen(function* () {
              const present = blocksOf(name)
              while (present.reduce((sum, { next, end }) => sum + end - next, 0) < count) {
                const [row] = yield* session.all<readonly [number]>(sql.nextBlock, [`numbers_${name}`])
                present.push({ next: row![0], end: row![0] + BLOCK })
              }
              return draw(present, count)
            }),
          ),
    forget: turn.withPermits(1)(Effect.sync(() => blocks.clear())),
  }
}
