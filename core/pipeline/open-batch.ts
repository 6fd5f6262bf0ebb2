import type { Aggregate } from "../model/policy.ts"
import type { Unit } from "./unit.ts"
import { unitOfBatch } from "./unit.ts"
import type { WorkItem } from "./work-item.ts"

/**
 * Matches that wait for the digest in which they are sent. Only one that was not offered yet joins: what a gate emitted,
 * what was offered before and retractions go by themselves, behind the matches that came before them. Times are in ms.
 */
export class OpenBatch {
  #items: Array<WorkItem> = []
  #openedAt = 0

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  /** How long it stays open: 0 when it is to be sent now, also because the sink does not gather any more (null). */
  restMs(aggregate: Aggregate | null, now: number): number {
    if (aggregate === null || this.#items.length >= aggregate.maxBatch) return 0
    // A clock that was set back must not keep it open for longer than a window.
    return Math.min(aggregate.windowMs, Math.max(0, this.#openedAt + aggregate.windowMs - now))
  }

  /** Adds units in their order; answers what is to be sent now, in order. */
  gather(units: ReadonlyArray<Unit>, aggregate: Aggregate | null, now: number): ReadonlyArray<Unit> {
    if (aggregate === null && this.isEmpty) return units
    const ready: Array<Unit> = []
    for (const unit of units) {
      if (aggregate === null || !joins(unit)) {
        ready.push(...this.flush(), unit)
        continue
      }
      if (this.isEmpty) this.#openedAt = now
      this.#items.push(unit.items[0]!)
      if (this.#items.length >= aggregate.maxBatch) ready.push(...this.flush())
    }
    return ready
  }

  /** Ends the batch: its unit, if it has one. */
  flush(): ReadonlyArray<Unit> {
    if (this.isEmpty) return []
    const items = this.#items
    this.#items = []
    return [unitOfBatch(items)]
  }
}

const joins = ({ items }: Unit): boolean => {
  const { kind, state, digest } = items[0]!.row
  return kind === "match" && state === "pending" && digest === null
}
