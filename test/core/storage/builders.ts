import type { Cursor } from "../../../core/model/cursor.ts"
import type { Gate } from "../../../core/model/policy.ts"
import type { MonitorDefinition, NetworkDefinition } from "../../../core/model/resource.ts"
import type { Lease, LateMintInput, MintInput, NewMatch } from "../../../core/storage/storage.ts"
import type { Stored, StoredMonitor, StoredSink } from "../../../core/storage/stored.ts"

export const at = (primary: number, secondary = 0): Cursor => ({ primary, secondary })

/** How `holder` claims: for 15 s, and no other holder is known to have gone. */
export const lease = (holder = "this", over: Partial<Lease> = {}): Lease => ({
  holder,
  ms: 15_000,
  isGone: () => false,
  ...over,
})

/** A match of monitor `transfers` for sink `log`, with an id that tells its cursor. */
export const match = (cursor: Cursor, over: Partial<NewMatch> = {}): NewMatch => {
  const id = over.id ?? `m-${cursor.primary}-${cursor.secondary}`
  return {
    id,
    monitor: "transfers",
    revision: "r1",
    cursor,
    time: 1_700_000_000_000 + cursor.primary,
    payload: JSON.stringify({ id, monitor: "transfers", network: "net", event: { n: cursor.primary } }),
    sinks: ["log"],
    ...over,
  }
}

/** A batch that ends at the primary of its last match, or at `upTo`. */
export const batch = (matches: ReadonlyArray<NewMatch>, over: Partial<MintInput> = {}): MintInput => ({
  upTo: over.upTo ?? at(matches.at(-1)?.cursor.primary ?? 0, 2_147_483_647),
  checkpoint: null,
  anchors: [],
  matches,
  offer: new Map(),
  durable: new Set(),
  effective: [],
  ...over,
})

export const late = (
  matches: ReadonlyArray<NewMatch & { readonly hash: string }>,
  over: Partial<LateMintInput> = {},
): LateMintInput => ({ anchors: [], matches, ...over })

export const network = (id: string, config: NetworkDefinition["config"] = {}): Stored<NetworkDefinition> => ({
  definition: { id, module: "test-source", config, journalDepth: null },
  revision: `${id}-1`,
})

export const sink = (id: string): StoredSink => ({
  definition: {
    id,
    module: "log",
    config: {},
    retry: { maxAttempts: 8, initialBackoffMs: 200, maxBackoffMs: 30_000 },
    throttle: null,
    aggregate: null,
    concurrency: 1,
    buffer: "MEMORY",
  },
  revision: `${id}-1`,
  paused: null,
})

export const monitor = (
  id: string,
  over: Partial<MonitorDefinition> = {},
  stored: Partial<StoredMonitor> = {},
): StoredMonitor => ({
  definition: {
    id,
    network: "net",
    selector: { kind: "event" },
    predicate: null,
    gate: null,
    sinks: ["log"],
    enabled: true,
    ...over,
  },
  revision: `${id}-1`,
  matchRevision: "r1",
  effectiveFrom: null,
  ...stored,
})

/** A hit of a gated monitor: of the key `by`, at an event time in ms. */
export const hit = (
  cursor: Cursor,
  gate: Gate,
  { key = "", ...over }: Partial<NewMatch> & { readonly key?: string } = {},
): NewMatch => match(cursor, { gate: { gate, key }, ...over })
