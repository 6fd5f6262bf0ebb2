const FULL_SWEEP_MS = 60_000

/** Where a row stands in the order of a sweep; the last part is its key. */
export type Place = readonly [first: number, second: number, key: number]

/** A row that is looked at: its place, and whether no one needs it any more. */
export type SweptTuple = readonly [...Place, over: number]

/** What came of a look at the next rows. */
export interface Swept {
  readonly over: ReadonlyArray<SweptTuple>
  readonly looked: number
  /** Whether no row is left behind these. */
  readonly atEnd: boolean
}

/**
 * Where the search for rows to remove goes on, network by network. Those that are needed stay behind it, maybe a great many,
 * so that it does not begin at the oldest row every time, and never looks at more than it may.
 */
export class Sweeps {
  readonly #sweeps = new Map<string, { place: Place; kept: number; readonly startedAt: number }>()

  /** The place to go on behind. */
  place(network: string): Place {
    return this.#sweeps.get(network)?.place ?? [Number.MIN_SAFE_INTEGER, 0, 0]
  }

  /** Takes up the rows that were found behind the place, at most `limit`. */
  take(network: string, found: ReadonlyArray<SweptTuple>, limit: number, now: number): Swept {
    const sweep = this.#sweeps.get(network) ?? { place: this.place(network), kept: 0, startedAt: now }
    const over = found.filter((row) => row[3] === 1)
    sweep.kept += found.length - over.length
    const last = found.at(-1)
    if (last !== undefined) sweep.place = [last[0], last[1], last[2]]
    const atEnd = found.length < limit
    if (atEnd && (sweep.kept <= limit || now - sweep.startedAt >= FULL_SWEEP_MS)) this.#sweeps.delete(network)
    else this.#sweeps.set(network, sweep)
    return { over, looked: found.length, atEnd }
  }
}
