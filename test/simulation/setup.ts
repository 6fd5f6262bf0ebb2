import { addressOf, TRANSFER } from "../../server/devnet/simulated/transfer.ts"
import { CREATED, FACTORY } from "../support/factory.ts"

/** The network of every simulation. */
export const NETWORK = "net"

/** The journal reaches back so many blocks; nothing is taken back from further behind. */
export const JOURNAL_DEPTH = 60

/** What is found late meets what its gate knows, as long as that is in the journal. */
export const PROVIDER_JOURNAL_DEPTH = 1000

/** The deepest that a fork or a rewind reaches back. */
export const DEEPEST = 25

/** The tokens that are watched: plain monitors listen to the first two, gated ones to the third. */
export const TOKENS = { plain: 1, other: 2, gated: 3 } as const

/** Contracts that the factory makes have this number, or a greater one. */
export const FIRST_CHILD = 1000

/** How a sink is set up; receivers are judged by it. */
export interface SinkSetup {
  readonly id: string
  /** Policies, in the form that definitions have. */
  readonly policies: Readonly<Record<string, unknown>>
  /** Nothing dies at it, as long as nobody pauses it. */
  readonly isReliable: boolean
  /** Deliveries come in the chain's order. */
  readonly isOrdered: boolean
  /** Its rows hold the checkpoint back. */
  readonly holdsCheckpoint: boolean
  /** It refuses some digests as too large, so that what a gate emits together may come apart. */
  readonly splits: boolean
}

/** Nothing dies of failures that another attempt mends. */
const PATIENT = { maxAttempts: 1000, initialBackoffMs: 20, maxBackoffMs: 100 }

const HASTY = { maxAttempts: 3, initialBackoffMs: 20, maxBackoffMs: 40 }

const plain: SinkSetup = {
  id: "plain",
  policies: { retry: PATIENT },
  isReliable: true,
  isOrdered: true,
  holdsCheckpoint: true,
  splits: false,
}

export const SINKS: ReadonlyArray<SinkSetup> = [
  plain,
  { ...plain, id: "hasty", policies: { retry: HASTY }, isReliable: false },
  {
    ...plain,
    id: "batches",
    policies: { retry: PATIENT, aggregate: { windowMs: 400, maxBatch: 5 } },
    isReliable: false,
    splits: true,
  },
  {
    ...plain,
    id: "limited",
    policies: { retry: PATIENT, throttle: { maxDeliveries: 12, windowMs: 1_000 } },
    isReliable: false,
  },
  { ...plain, id: "parallel", policies: { retry: PATIENT, concurrency: 4 }, isOrdered: false },
  { ...plain, id: "durable", policies: { retry: HASTY, buffer: "DURABLE" }, holdsCheckpoint: false },
  {
    ...plain,
    id: "durable-batches",
    policies: {
      retry: HASTY,
      buffer: "DURABLE",
      aggregate: { windowMs: 400, maxBatch: 8 },
      throttle: { maxDeliveries: 20, windowMs: 500 },
    },
    isReliable: false,
    holdsCheckpoint: false,
    splits: true,
  },
]

/** Hears of the monitor that changes, and of nothing else. */
export const CHANGING_SINK: SinkSetup = { ...plain, id: "changes" }

export interface GateSetup {
  readonly type: "threshold" | "max_once"
  readonly count?: number
  readonly windowMs: number
  /** The argument that hits are told apart by. */
  readonly by: "from" | "to" | null
}

/** A monitor in words that a definition is made of, and the oracle reads. */
export interface MonitorSetup {
  readonly id: string
  /** Those that are watched, or the contracts of the factory. */
  readonly tokens: ReadonlyArray<number> | "children"
  /** Only transfers of more than this. */
  readonly above: number | null
  readonly gate: GateSetup | null
  readonly sinks: ReadonlyArray<string>
}

/** Of a block in the simulated chain, in ms. */
export const BLOCK_MS = 12_000

/** Those that stay as they are: what each sink must hold of them is known exactly. */
export const MONITORS: ReadonlyArray<MonitorSetup> = [
  {
    id: "all",
    tokens: [TOKENS.plain],
    above: null,
    gate: null,
    sinks: ["plain", "batches", "parallel", "durable", "durable-batches"],
  },
  { id: "large", tokens: [TOKENS.plain, TOKENS.other], above: 600, gate: null, sinks: ["plain", "hasty", "limited"] },
  {
    id: "burst",
    tokens: [TOKENS.gated],
    above: null,
    gate: { type: "threshold", count: 3, windowMs: 10 * BLOCK_MS, by: "from" },
    sinks: ["plain", "durable", "hasty"],
  },
  {
    id: "crowd",
    tokens: [TOKENS.gated],
    above: 300,
    gate: { type: "threshold", count: 4, windowMs: 8 * BLOCK_MS, by: null },
    sinks: ["batches", "parallel", "limited"],
  },
  {
    id: "once-each",
    tokens: [TOKENS.gated],
    above: null,
    gate: { type: "max_once", windowMs: 5 * BLOCK_MS, by: "to" },
    sinks: ["plain", "batches"],
  },
  {
    id: "once",
    tokens: [TOKENS.gated, TOKENS.other],
    above: 500,
    gate: { type: "max_once", windowMs: 3 * BLOCK_MS, by: null },
    sinks: ["parallel", "durable-batches"],
  },
]

/** Those of a world of several providers. */
export const PROVIDER_MONITORS: ReadonlyArray<MonitorSetup> = [
  ...MONITORS.filter(({ id }) => ["all", "large", "burst", "once-each"].includes(id)),
  { id: "children", tokens: "children", above: null, gate: null, sinks: ["plain", "batches", "parallel", "durable"] },
  { id: "children-large", tokens: "children", above: 500, gate: null, sinks: ["hasty", "limited"] },
  {
    id: "children-burst",
    tokens: "children",
    above: null,
    gate: { type: "threshold", count: 3, windowMs: 8 * BLOCK_MS, by: "from" },
    sinks: ["plain", "durable-batches"],
  },
]

/** The one that changes while a network runs. */
export const CHANGING: MonitorSetup = {
  id: "changing",
  tokens: [TOKENS.other],
  above: 200,
  gate: null,
  sinks: [CHANGING_SINK.id],
}

const addressesOf = ({ tokens }: Pick<MonitorSetup, "tokens">) =>
  tokens === "children" ? { factory: { address: FACTORY, event: CREATED, param: "pool" } } : tokens.map(addressOf)

export const monitorDefinition = ({ id, tokens, above, gate, sinks }: MonitorSetup, enabled = true) => ({
  id,
  network: NETWORK,
  selector: { kind: "event", address: addressesOf({ tokens }), event: TRANSFER },
  predicate: above === null ? null : `args.value > ${above}`,
  ...(gate === null
    ? {}
    : {
        gate: {
          type: gate.type,
          ...(gate.count === undefined ? {} : { count: gate.count }),
          windowMs: gate.windowMs,
          by: gate.by === null ? null : `args.${gate.by}`,
        },
      }),
  sinks,
  enabled,
})

/** `version` makes another config of it. */
export const sinkDefinition = ({ id, policies }: SinkSetup, version = 0) => ({
  id,
  module: "simulated",
  config: { id, version },
  ...policies,
})

/** @param nodes what its config says of them */
export const networkDefinition = (nodes: { readonly urls: ReadonlyArray<string> }, journalDepth = JOURNAL_DEPTH) => ({
  id: NETWORK,
  module: "evm-rpc",
  config: { chain_id: 1, confirmations: 0, start: 1, poll_interval_ms: 40, ...nodes },
  journalDepth,
})
