import type { Effect, Schema, Scope, Stream } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { AddressFormat, Fields, RecordType } from "../model/fields.ts"
import type { Problem } from "../model/problem.ts"
import type { Egress } from "./egress.ts"
import type { PluginRefused, SourceError } from "./error.ts"
import type { Secrets } from "./secrets.ts"

/** What a source needs to verify a resume: the hash of one primary (on EVM: of the block of that number). */
export interface Anchor {
  readonly primary: number
  readonly hash: string
}

/** What a record says, and what it belongs to. */
export interface RecordId {
  /** Up to 200 characters. */
  readonly key: string
  /** Up to 1,000 characters. */
  readonly value: string
}

/**
 * Something that a source found and must know after a restart. A value is kept once for each key: recorded again, it moves
 * to the new cursor. What lies behind a point that is taken back is forgotten.
 */
export interface SourceRecord extends RecordId {
  readonly cursor: Cursor
}

/** One thing that happened, seen through one selector shape. */
export interface SourceEvent {
  readonly cursor: Cursor
  /** Tells apart several events of one cursor and shape; 0 where there is one. */
  readonly index: number
  /** Ids of the interests that it concerns, all of one shape. Share the array between events where you can. */
  readonly interests: ReadonlyArray<string>
  /** Event time in ms since 1970, or null where the feed has none. */
  readonly time: number | null
  /**
   * The decoded fields, as the shape of the interests describes them. Called at most a few times and only for an event
   * that may match; it may decode then. A throw means that this event does not decode: it is counted and skipped.
   */
  readonly fields: () => Fields
}

/**
 * Everything of a closed piece of the feed. `events` are in cursor order and lie behind the `upTo` of the batch before
 * and not behind this `upTo`. `interests` is the version that the piece was fetched for. `resume` are the hashes to
 * record with it, `records` (none behind `upTo`) and `forget` what else of the source's is to be kept from then on, or no
 * longer; what is in both is kept. At most some thousands of each.
 */
export interface SourceBatch {
  readonly events: ReadonlyArray<SourceEvent>
  readonly upTo: Cursor
  readonly resume: ReadonlyArray<Anchor>
  readonly interests: number
  readonly records?: ReadonlyArray<SourceRecord>
  readonly forget?: ReadonlyArray<RecordId>
  /**
   * Interests of the version that the piece was not fetched for, by their ids, and what the source must know first. They
   * take effect with the first batch that does not name them.
   */
  readonly pending?: ReadonlyMap<string, string>
}

/**
 * What was found at or behind the feed's present position. `resume` holds the hash of the primary of each event and record;
 * one is taken only if that hash is the recorded one, or gets recorded with it. What lies ahead is left out. `records` are
 * kept together with the first of the events, so that no restart knows of these alone.
 */
export interface LateBatch {
  readonly events: ReadonlyArray<SourceEvent>
  readonly resume: ReadonlyArray<Anchor>
  readonly interests: number
  readonly records?: ReadonlyArray<SourceRecord>
}

export interface Interest<Selector> {
  readonly id: string
  readonly selector: Selector
}

/** The monitors' selectors, in one version. A higher version replaces it whole. */
export interface InterestSet<Selector> {
  readonly version: number
  readonly interests: ReadonlyArray<Interest<Selector>>
}

/** Where a run goes on, and what earlier ones recorded. */
export interface Resume {
  readonly cursor: Cursor
  /** The recorded hashes at or before it, newest first. */
  readonly anchors: ReadonlyArray<Anchor>
  /** What lies up to so many primaries behind the feed's position can still be taken back: hashes are worth keeping that far. */
  readonly depth: number
  /** In no particular order. */
  readonly records: ReadonlyArray<SourceRecord>
  /** Where the network began: nothing before it was ever handed over. Null if that is not known any more. */
  readonly start: Cursor | null
}

/** What a running source is given. */
export interface SourceRun<Selector> {
  /** The position to go on behind, and what was recorded at or before it. */
  readonly resume: Resume
  /** The present interests; read them again for each piece that is fetched. */
  readonly interests: Effect.Effect<InterestSet<Selector>>
  /** Hands over the next piece of the feed; waits while the pipeline is full. */
  readonly emit: (batch: SourceBatch) => Effect.Effect<void>
  /** Hands over what an earlier piece should have held; waits while the pipeline is full. */
  readonly late: (batch: LateBatch) => Effect.Effect<void>
  /** Tells the newest position that the feed is known to have. */
  readonly head: (cursor: Cursor) => Effect.Effect<void>
  /** Tells why the source does not advance at present (shown as the network's `error`), or null when it does again. */
  readonly trouble: (reason: string | null) => Effect.Effect<void>
}

/** How a run ended without an error: the feed is over, or everything behind `from` lies on a dead fork. */
export type SourceOutcome =
  | { readonly _tag: "Completed" }
  | { readonly _tag: "Invalidated"; readonly from: Cursor; readonly cause: string }

export interface Source<Selector> {
  /**
   * Checks that the feed is the configured one and resolves where a network without a checkpoint begins: the cursor
   * right before the first thing that it shall see.
   */
  readonly start: Effect.Effect<Cursor, SourceError>
  /** Runs until it is interrupted, the feed ends or a fork cuts into what was emitted. Verifies `resume` first. */
  readonly run: (run: SourceRun<Selector>) => Effect.Effect<SourceOutcome, SourceError, Scope.Scope>
  /**
   * Reads the primaries `from` to `to`, both included, as batches in order. Emits nothing to the pipeline. `start` is where
   * the network began, if it has.
   */
  readonly scan: (range: {
    readonly from: number
    readonly to: number
    readonly interests: InterestSet<Selector>
    readonly start?: Cursor
  }) => Stream.Stream<SourceBatch, SourceError>
}

/** What a selector yields: its fields, and which of them identify an event. */
export interface SelectorDescription {
  readonly fields: RecordType
  readonly identity: ReadonlyArray<string>
}

export interface SourcePlugin<Config = any, Selector = any> {
  readonly kind: "source"
  readonly name: string
  readonly config: Schema.Codec<Config, any>
  readonly selector: Schema.Codec<Selector, any>
  /** Paths in the config that are masked when shown: `url`, `urls.*`, `headers.*`. */
  readonly sensitive: ReadonlyArray<string>
  /** Top-level config fields that cannot change while the network has a checkpoint. */
  readonly fixed: ReadonlyArray<string>
  /** How addresses are read and shown; without it, an address is any string. */
  readonly address: AddressFormat
  /** Whether its events have a time, as gates need it; they have unless this is false. */
  readonly eventTime: boolean
  /**
   * Whether a cursor is a position of the feed that can be read again; it is unless this is false. If it is not, what was
   * missed while nobody looked is not seen, ids differ from run to run, and rewinds, tests and backtests are refused.
   */
  readonly resumable: boolean
  /** Checks a selector that its Schema accepted, and says what it yields. Pure. */
  readonly describe: (selector: Selector) => SelectorDescription | { readonly problems: ReadonlyArray<Problem> }
  /** Builds the source. Validates and opens what it needs; emits nothing and changes nothing outside. */
  readonly make: (config: Config) => Effect.Effect<Source<Selector>, PluginRefused, Scope.Scope | Egress | Secrets>
}

const plainAddress: AddressFormat = { parse: (text) => text, format: (canonical) => canonical }

/** Defines a source plugin; the default export of its file. */
export const SourcePlugin = {
  make: <Config, Selector>(
    definition: Pick<SourcePlugin<Config, Selector>, "name" | "config" | "selector" | "describe" | "make"> &
      Partial<Pick<SourcePlugin<Config, Selector>, "sensitive" | "fixed" | "address" | "eventTime" | "resumable">>,
  ): SourcePlugin<Config, Selector> => ({
    kind: "source",
    sensitive: [],
    fixed: [],
    address: plainAddress,
    eventTime: true,
    resumable: true,
    ...definition,
  }),
}
