import { type Cursor, isAfter } from "../../model/cursor.ts"
import { type Native, rows } from "./native.ts"
import { sql } from "./sql.ts"

/** A network's pipeline row, read once a group and written back once. */
export class NetworkRow {
  dirty = false
  readonly id: string
  epoch: number
  deleted: boolean
  minted: Cursor | null
  checkpoint: Cursor | null
  checkpointAt: number
  feedPosition: number

  constructor(id: string, [epoch, deleted, mp, ms, cp, cs, at, feed]: PipelineTuple) {
    this.id = id
    this.epoch = epoch
    this.deleted = deleted === 1
    this.minted = cursorOf(mp, ms)
    this.checkpoint = cursorOf(cp, cs)
    this.checkpointAt = at
    this.feedPosition = feed
  }

  /** Takes `count` feed positions; answers the first. */
  takePositions(count: number): number {
    const first = this.feedPosition + 1
    this.feedPosition += count
    this.dirty = true
    return first
  }

  advanceMinted(to: Cursor): void {
    if (this.minted !== null && !isAfter(to, this.minted)) return
    this.minted = to
    this.dirty = true
  }

  /** Forward only, and at most to `minted`. */
  advanceCheckpoint(to: Cursor, now: number): void {
    if (this.minted === null) return
    const target = isAfter(to, this.minted) ? this.minted : to
    if (this.checkpoint !== null && !isAfter(target, this.checkpoint)) return
    this.checkpoint = target
    this.checkpointAt = now
    this.dirty = true
  }
}

export type PipelineTuple = readonly [
  epoch: number,
  deleted: number,
  mintedPrimary: number | null,
  mintedSecondary: number | null,
  checkpointPrimary: number | null,
  checkpointSecondary: number | null,
  checkpointAt: number,
  feedPosition: number,
]

const cursorOf = (primary: number | null, secondary: number | null): Cursor | null =>
  primary === null || secondary === null ? null : { primary, secondary }

export type CounterName = "match" | "delivery" | "died"

/** What the commands of one transaction share: each network's row and the counters, read and written once. */
export interface Group {
  readonly network: (id: string) => NetworkRow | undefined
  /** The network's row, made if there is none. */
  readonly networkOrNew: (id: string) => NetworkRow
  /** Takes `count` numbers; answers the first. */
  readonly take: (name: CounterName, count: number) => number
  /** Writes what changed; the last thing before COMMIT. */
  readonly flush: () => void
}

/** Prepares the statements and answers a maker of groups. */
export const makeGroups = (native: Native): (() => Group) => {
  const read = rows<PipelineTuple>(native, sql.network)
  const insert = native.prepare(sql.insertNetwork)
  const update = native.prepare(sql.updateNetwork)
  const readCounter = rows<readonly [number]>(native, sql.counter)
  const updateCounter = native.prepare(sql.updateCounter)

  return () => {
    const networks = new Map<string, NetworkRow | undefined>()
    const counters = new Map<CounterName, number>()

    const network = (id: string): NetworkRow | undefined => {
      if (networks.has(id)) return networks.get(id)
      const tuple = read.get(id)
      const row = tuple === undefined ? undefined : new NetworkRow(id, tuple)
      networks.set(id, row)
      return row
    }

    return {
      network,
      networkOrNew: (id) => {
        const known = network(id)
        if (known !== undefined) return known
        insert.run(id, 0)
        const row = new NetworkRow(id, [0, 0, null, null, null, null, 0, 0])
        networks.set(id, row)
        return row
      },
      take: (name, count) => {
        const last = counters.get(name) ?? readCounter.get(name)![0]
        counters.set(name, last + count)
        return last + 1
      },
      flush: () => {
        for (const row of networks.values()) {
          if (row === undefined || !row.dirty) continue
          update.run(
            row.epoch,
            row.deleted ? 1 : 0,
            row.minted?.primary ?? null,
            row.minted?.secondary ?? null,
            row.checkpoint?.primary ?? null,
            row.checkpoint?.secondary ?? null,
            row.checkpointAt,
            row.feedPosition,
            row.id,
          )
        }
        for (const [name, value] of counters) updateCounter.run(value, name)
      },
    }
  }
}
