import type { Config } from "./config.ts"
import type { Header } from "./header.ts"

/** The depth that stands for a tag at nodes that do not know it, in blocks. */
const DEPTH_OF = { safe: 32, finalized: 64 } as const

/** Which blocks are deep enough to be handed over. */
export interface Depth {
  /** The tags that have to be asked for. */
  readonly tags: ReadonlyArray<string>
  /** The newest block that may be handed over. */
  readonly target: (latest: Header, tagged: ReadonlyArray<Header | null>) => number
  /** For how many answers in a row a tag that was known before was not. */
  readonly lacking: () => number
}

/**
 * Makes the depth for `confirmations`. A tag that no node ever answered is replaced by a depth; one that was answered
 * before and is not now leaves the target where it is.
 */
export const makeDepth = (confirmations: Config["confirmations"]): Depth => {
  // Not kept from one head to the next: a head that somebody made up must not count for longer than it is told.
  if (typeof confirmations === "number")
    return { tags: [], target: (latest) => latest.number - confirmations, lacking: () => 0 }
  let target = -1
  const raise = (to: number) => (target = Math.max(target, to))
  let answered = false
  let lacking = 0
  return {
    tags: [confirmations],
    target: (latest, [tagged]) => {
      if (tagged) {
        answered = true
        lacking = 0
        return raise(Math.min(tagged.number, latest.number))
      }
      if (!answered) return raise(latest.number - DEPTH_OF[confirmations])
      lacking++
      return target
    },
    lacking: () => lacking,
  }
}
