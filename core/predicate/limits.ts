import { isAbsorbable, LimitReached } from "./failure.ts"

/** Greatest length of a predicate's source, in UTF-16 units. */
export const MAX_SOURCE = 4096
/** Greatest number of nodes in a predicate's tree. */
export const MAX_NODES = 2000
/** How deep parentheses, brackets and field paths may nest. */
export const MAX_NESTING = 32
/** How deep the tree may be; long `&&` and `||` chains count once. */
export const MAX_TREE_DEPTH = 256
/** Greatest number of elements of a list literal. */
export const MAX_LIST = 1000
/** Greatest length of a string that `+` makes, in UTF-16 units. */
export const MAX_STRING_SUM = 65_536
/** Greatest length of a list that `+` makes. */
export const MAX_LIST_SUM = 10_000
/** Integers lie strictly between -2^512 and 2^512. */
export const MAX_INT_BITS = 512
/** Steps of comprehensions in one evaluation. */
export const MAX_STEPS = 10_000

const NODES_PER_STEP = 32

/**
 * The work that one evaluation may still do, in steps. A step is one turn of a comprehension or one failure
 * that was absorbed; a large body and a look through long lists or strings count as more, so that the whole stays within
 * a tenth of a second.
 */
export class Budget {
  #left = MAX_STEPS

  /** Starts a new evaluation. */
  reset(): void {
    this.#left = MAX_STEPS
  }

  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new LimitReached(`the evaluation takes more than ${MAX_STEPS} steps`)
  }

  /** Lets an evaluation go on after a failure that may not matter; whatever always matters is thrown again. */
  absorb(error: unknown): void {
    if (!isAbsorbable(error)) throw error
    this.spend(1)
  }
}

/** What one turn costs when a comprehension's body has this many nodes. */
export const stepsOfBody = (nodes: number): number => 1 + Math.floor(nodes / NODES_PER_STEP)

/** What it costs to look through a list. */
export const stepsOfList = (list: ReadonlyArray<unknown>): number => list.length >> 6

/** What it costs to look through a string. */
export const stepsOfString = (text: string): number => text.length >> 10
