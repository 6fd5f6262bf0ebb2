import { type Cursor, startOf } from "../../../core/model/cursor.ts"
import type { Anchor } from "../../../core/plugin/source.ts"
import type { ReadBatch } from "./batches.ts"
import { FIRST_LOG } from "./log-position.ts"
import type { Log } from "./logs.ts"
import type { Range } from "./range-reads.ts"
import type { Routing } from "./routing.ts"
import type { Provider } from "./rpc/providers.ts"

/** Blocks that were handed over, and what is known about them. */
export interface HandedOver extends Range {
  /** Null for what an earlier run handed over: for the interests of today. */
  readonly routing: Routing | null
  /** The hashes that are known; that of the last block always is. */
  readonly hashes: ReadonlyMap<number, string>
  /** Logs at or before it belong to an earlier batch. */
  readonly after: Cursor
  /** The logs that concerned someone; null if nobody knows any more. */
  readonly seen: ReadonlySet<number> | null
  /** Who answered them. */
  readonly by: Provider | null
}

/** The next blocks to compare, of one piece. */
export interface Due extends Range {
  readonly piece: HandedOver
}

/** Blocks whose comparison may be outstanding, unless they are of one range. */
const CAPACITY = 1024

/**
 * So many blocks that an earlier run handed over last are compared anew: of those near the head, whose hashes are all recorded,
 * fewer, since the comparison keeps up there.
 */
const RECHECKED = { near: 64, deep: CAPACITY } as const

const positionOf = (block: number, index: number): number => block * 2 ** 22 + index

/** Whether a log was handed over with its block. */
export const wasSeen = ({ seen }: HandedOver, { block, index }: Log): boolean =>
  seen?.has(positionOf(block, index)) ?? false

/** What was handed over in a batch that began at `from`. */
export const handedOver = ({ batch, by, routing }: ReadBatch, from: number, after: Cursor): HandedOver => {
  const seen = new Set<number>()
  for (const { cursor } of batch.events)
    if (cursor.secondary >= FIRST_LOG) seen.add(positionOf(cursor.primary, cursor.secondary - FIRST_LOG))
  return {
    from,
    to: batch.upTo.primary,
    routing,
    hashes: new Map(batch.resume.map(({ primary, hash }) => [primary, hash])),
    after,
    seen,
    by,
  }
}

/**
 * What an earlier run handed over and may not have compared; null if nothing is known. Blocks at and below the oldest
 * recorded hash are left out: their matches may be pruned, and would be taken for new ones.
 */
export const handedOverBefore = (anchors: ReadonlyArray<Anchor>): HandedOver | null => {
  const newest = anchors[0]
  const oldest = anchors.at(-2)
  if (newest === undefined || oldest === undefined) return null
  const areNear = anchors.slice(0, RECHECKED.near).every(({ primary }, i) => primary === newest.primary - i)
  const from = Math.max(oldest.primary, newest.primary - (areNear ? RECHECKED.near : RECHECKED.deep) + 1)
  return {
    from,
    to: newest.primary,
    routing: null,
    hashes: new Map(anchors.map(({ primary, hash }) => [primary, hash])),
    after: startOf(from),
    seen: null,
    by: null,
  }
}

/** What was handed over and is still to be compared, in order. */
export class AuditQueue {
  readonly #pieces: Array<HandedOver> = []
  /** Blocks of the first piece that are done. */
  #done = 0
  #blocks = 0

  add(piece: HandedOver): void {
    this.#pieces.push(piece)
    this.#blocks += piece.to - piece.from + 1
  }

  get isFull(): boolean {
    return this.#pieces.length > 1 && this.#blocks > CAPACITY
  }

  /** The next blocks, at most so many and none above `highest`; null if there are none. */
  next(most: number, highest: number): Due | null {
    const piece = this.#pieces[0]
    if (piece === undefined) return null
    const from = piece.from + this.#done
    const to = Math.min(piece.to, from + most - 1, highest)
    return to < from ? null : { piece, from, to }
  }

  /** These blocks are done with. */
  advance({ piece, from, to }: Due): void {
    if (this.#pieces[0] !== piece) return
    const blocks = to - from + 1
    this.#done += blocks
    this.#blocks -= blocks
    if (piece.from + this.#done <= piece.to) return
    this.#pieces.shift()
    this.#done = 0
  }

  /** Leaves out the oldest pieces until there is room; answers how many blocks that were. */
  dropOldest(): number {
    const before = this.#blocks
    while (this.isFull) {
      const piece = this.#pieces.shift()!
      this.#blocks -= piece.to - piece.from + 1 - this.#done
      this.#done = 0
    }
    return before - this.#blocks
  }
}
