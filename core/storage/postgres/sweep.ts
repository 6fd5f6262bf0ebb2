import { Effect } from "effect"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import type { Value } from "./native.ts"

const FULL_SWEEP_MS = 60_000

type Place = readonly [first: number, second: number, key: number]

/** A row that is looked at: its place, of which the last is its key, and whether no one needs it any more. */
export type SweptTuple = readonly [...Place, over: number]

const START: Place = [Number.MIN_SAFE_INTEGER, 0, 0]

/**
 * Where the search for rows to remove goes on, network by network. Those that are needed stay behind it, maybe a great many,
 * so that it does not begin at the oldest row every time.
 */
export class Sweeps {
  readonly #sweeps = new Map<string, { place: Place; kept: number; readonly startedAt: number }>()
  readonly #statement: string

  /** @param statement takes the network, the bound, the place, the limit and what else it needs, and answers `SweptTuple`s */
  constructor(statement: string) {
    this.#statement = statement
  }

  /** Looks at the next rows: which are over, how many there were, and whether none is left. */
  readonly next = Effect.fnUntraced(
    { self: this },
    function* (
      { session, network }: Group,
      bound: number,
      limit: number,
      now: number,
      ...rest: ReadonlyArray<Value>
    ): Effect.fn.Return<
      { readonly over: ReadonlyArray<SweptTuple>; readonly looked: number; readonly atEnd: boolean },
      QueryFailed
    > {
      const sweep = this.#sweeps.get(network.id) ?? { place: START, kept: 0, startedAt: now }
      this.#sweeps.set(network.id, sweep)
      const found = yield* session.all<SweptTuple>(this.#statement, [network.id, bound, ...sweep.place, limit, ...rest])
      const over = found.filter((row) => row[3] === 1)
      sweep.kept += found.length - over.length
      const last = found.at(-1)
      if (last !== undefined) sweep.place = [last[0], last[1], last[2]]
      const atEnd = found.length < limit
      if (atEnd && (sweep.kept <= limit || now - sweep.startedAt >= FULL_SWEEP_MS)) this.#sweeps.delete(network.id)
      return { over, looked: found.length, atEnd }
    },
  )
}
