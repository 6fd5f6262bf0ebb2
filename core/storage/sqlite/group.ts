import { NetworkRow, type PipelineTuple } from "../network-row.ts"
import { type Native, rows } from "./native.ts"
import { sql } from "./sql.ts"

export type CounterName = "match" | "delivery" | "died" | "hit"

/** What the commands of one transaction share: each network's row and the counters, read and written once. */
export interface Group {
  readonly network: (id: string) => NetworkRow | undefined
  /** The network's row, made if there is none. */
  readonly networkOrNew: (id: string) => NetworkRow
  /** Takes `count` numbers; answers the first. */
  readonly take: (name: CounterName, count: number) => number
  /** Writes what changed; the last thing before COMMIT. */
  readonly flush: () => void
  /** Whether events of actions are among what was written. */
  wroteEvents: boolean
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
      wroteEvents: false,
      network,
      networkOrNew: (id) => {
        const known = network(id)
        if (known !== undefined) return known
        insert.run(id, 0)
        const row = NetworkRow.unclaimed(id)
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
          update.run(...row.values, row.id)
        }
        for (const [name, value] of counters) updateCounter.run(value, name)
      },
    }
  }
}
