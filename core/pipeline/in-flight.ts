import { Effect, Latch } from "effect"
import { isRetraction, type Unit } from "./unit.ts"

/**
 * The units that a worker has under way at once. Matches go together, and so do retractions of different matches, but a
 * retraction never goes beside a match: it waits for those before it, and those behind it wait for it.
 */
export class InFlight {
  readonly #units = new Set<Unit>()
  readonly #ended = Latch.makeUnsafe(true)

  get isEmpty(): boolean {
    return this.#units.size === 0
  }

  #mayBegin(unit: Unit, limit: number): boolean {
    if (this.#units.size >= limit) return false
    const [other] = this.#units
    if (other === undefined) return true
    if (isRetraction(unit) !== isRetraction(other)) return false
    return !isRetraction(unit) || ![...this.#units].some((each) => isOfSameMatch(each, unit))
  }

  /** Waits until a unit may begin beside what is under way, and counts it in. */
  begin(unit: Unit, limit: () => number): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#mayBegin(unit, limit())) {
        this.#units.add(unit)
        return Effect.void
      }
      return Effect.andThen(this.#next(), this.begin(unit, limit))
    })
  }

  end(unit: Unit): void {
    this.#units.delete(unit)
    this.#ended.openUnsafe()
  }

  /** Waits until nothing is under way. */
  untilNone(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isEmpty ? Effect.void : Effect.andThen(this.#next(), this.untilNone())))
  }

  /** Waits for the next one to end. */
  #next(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#ended.closeUnsafe()
      return this.#ended.await
    })
  }
}

const isOfSameMatch = (a: Unit, b: Unit): boolean => a.items[0]!.row.matchId === b.items[0]!.row.matchId
