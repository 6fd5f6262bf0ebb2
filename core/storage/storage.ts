import type { MikroORM } from "@mikro-orm/core"
import { Context, type Effect, type Scope, type Stream } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { JsonObject } from "../model/fields.ts"
import type { Gate } from "../model/policy.ts"
import type { Anchor, RecordId, SourceRecord } from "../plugin/source.ts"
import type { DeadLetterCount, DeadLetterRow, LetterFilter } from "./dead-letter.ts"
import type { FeedPage, FeedState, StoredFeedItem } from "./feed-item.ts"
import type { Held, NotOwner, StaleResources, StorageError } from "./error.ts"
import type { OrmOptions } from "./orm-options.ts"
import type { EventTerms, MatchState } from "./events.ts"
import type { ResourceChanges, SeedRecord, StoredResources } from "./stored.ts"

/** How a process holds a network. */
export interface Lease {
  /** Names this runtime, apart from any other that ever used the database. */
  readonly holder: string
  /** How long it may go on without renewing it, in ms. */
  readonly ms: number
  /** Whether the process of another holder is known to have ended, so that its lease need not be waited for. */
  readonly isGone: (holder: string) => boolean
}

/** A claim on a network's pipeline; each hot write carries it and is refused when its epoch is no longer the newest. */
export interface Owner {
  readonly network: string
  readonly epoch: number
}

export interface Pipeline {
  readonly network: string
  /** The end of what was matched and stands in rows; null before the start was resolved. */
  readonly minted: Cursor | null
  /** Everything at or before it is finished. Never behind `minted`. */
  readonly checkpoint: Cursor | null
  /** When the checkpoint was written, in ms. */
  readonly checkpointAt: number
  readonly feedPosition: number
  /** The resolved start: nothing is read again from before it. */
  readonly start: Cursor | null
  /** Whether an operator lets it rest. */
  readonly paused: boolean
}

/** What a network takes back, from its first durable step to its last. */
export interface Invalidation {
  /** The proven point: everything behind it is taken back. */
  readonly from: Cursor
  readonly cause: string
  /** Whether every match behind `from` has ended and its retractions stand in rows. */
  readonly retracted: boolean
}

/** What one step of taking back wrote. */
export interface Retracted {
  /** Matches that ended in this step. */
  readonly matches: number
  /** Whether no match behind `from` is left; until then the step is to be repeated. */
  readonly done: boolean
  /** Feed items that were written: position after the step, and how many. */
  readonly feedPosition: number
  readonly shown: number
}

/** How an invalidation ended. */
export interface Rewound {
  /** Where the pipeline goes on from. */
  readonly to: Cursor | null
  /** False when `from` was not behind the checkpoint: all else was done, the checkpoint stayed. */
  readonly moved: boolean
  /**
   * Set when the journal does not reach back to `from`, so that matches may have been delivered of which no row was
   * left to retract: the highest primary that the checkpoint ever had, which it reaches back from.
   */
  readonly gap: number | null
}

/** A match to be minted, with the sinks that shall have a delivery row of it. */
export interface NewMatch {
  readonly id: string
  readonly monitor: string
  /** The monitor's `matchRevision`. */
  readonly revision: string
  readonly cursor: Cursor
  readonly time: number | null
  /** As `encodePayload` made it. */
  readonly payload: string
  /** What the payload says, as it was rendered: handed on to the rows so that it need not be parsed again. */
  readonly event?: JsonObject
  readonly sinks: ReadonlyArray<string>
  /**
   * Set when the predicate failed on this event: the rows are minted dead with this reason and the match is not shown
   * in the feed.
   */
  readonly failure?: string
  /** Set when it is a hit of a gated monitor: the gate decides in the same transaction what of it becomes a match. */
  readonly gate?: { readonly gate: Gate; readonly key: string }
}

export interface MintInput extends Partial<EventTerms> {
  /** The end of the batch. */
  readonly upTo: Cursor
  /** The new checkpoint, when the batch leaves nothing open before it; at most `upTo`. */
  readonly checkpoint: Cursor | null
  readonly anchors: ReadonlyArray<Anchor>
  /** In cursor order. */
  readonly matches: ReadonlyArray<NewMatch>
  /** How many rows a sink's idle worker takes at once: so many of its first rows are minted `offered`. */
  readonly offer: ReadonlyMap<string, number>
  /** Sinks with a durable buffer: their rows hold no slot. */
  readonly durable: ReadonlySet<string>
  /** Monitors whose present revision saw its first batch, with their `effectiveFrom`. */
  readonly effective: ReadonlyArray<{ readonly monitor: string; readonly matchRevision: string; readonly from: Cursor }>
  /** What the source keeps from now on; one of a key and value that is kept already moves to its cursor. */
  readonly records?: ReadonlyArray<SourceRecord>
  /** What the source keeps no longer, unless `records` holds it. */
  readonly forget?: ReadonlyArray<RecordId>
}

/** A delivery row as its worker sees it. */
export interface DeliveryRow {
  /** Order in its sink, over all networks; also the row's key. */
  readonly seq: number
  readonly network: string
  readonly sink: string
  readonly monitor: string
  readonly matchId: string
  readonly life: number
  readonly kind: "match" | "retracted"
  /** Of the match; of a gate's emission, that of its newest member: what invalidates this one invalidates the row. */
  readonly cursor: Cursor
  readonly state: "pending" | "offered"
  /** Rows of one sink with the same digest are delivered together: offered so, or emitted so by a gate. */
  readonly digest: string | null
  readonly attempts: number
  /** Whether its cursor's slot of the checkpoint waits for it. */
  readonly slot: boolean
  /** The match's stored payload; empty for a retraction, which is sent without it. */
  readonly payload: string
  /** The payload's event, if it is at hand. */
  readonly event?: JsonObject
  /** The event's time in ms since 1970, if it has one and it is at hand. */
  readonly time?: number
}

export interface Minted {
  /** The delivery rows that were written and are owed, in `seq` order. */
  readonly rows: ReadonlyArray<DeliveryRow>
  /** Feed items that were written: position after the group, and how many. */
  readonly feedPosition: number
  readonly shown: number
}

/** Failed attempts at a row that is still owed, all of them counted. */
export interface Tried {
  readonly seq: number
  readonly attempts: number
}

/** Rows that are offered together. */
export interface Digest {
  readonly digest: string
  readonly seqs: ReadonlyArray<number>
}

/** How a delivery ended. `attempts` counts all of them. */
export interface Outcome {
  readonly seq: number
  readonly state: "delivered" | "dead"
  readonly attempts: number
  readonly reason: string | null
}

export interface LateMintInput extends Partial<EventTerms> {
  /** Anchors that came with the find; a height that has none recorded gets this one. */
  readonly anchors: ReadonlyArray<Anchor>
  readonly matches: ReadonlyArray<NewMatch & { readonly hash: string }>
  /** What the source keeps from now on, as far as its hash is the recorded one. */
  readonly records?: ReadonlyArray<SourceRecord & { readonly hash: string }>
}

export interface PruneInput {
  /** In primaries. */
  readonly journalDepth: number
  /** How long events of matches are kept when their deliveries to actions are over, in ms. */
  readonly actionRetention: number
  /** In feed items. */
  readonly feedRetention: number
  /** The most rows that one call may touch. */
  readonly limit: number
}

type Read<A> = Effect.Effect<A, StorageError>
type Write<A> = Effect.Effect<A, StorageError | NotOwner>

/**
 * Everything durable. Rows are the truth: what a call wrote is on disk when it succeeds. Hot writes of all networks are
 * committed in groups; each call stands alone in its group, one that fails takes no other with it.
 */
export class Storage extends Context.Service<
  Storage,
  {
    readonly database: "sqlite" | "postgres"
    /**
     * A MikroORM with the entities of a program over this very database, until the scope closes. On SQLite it shares the one
     * connection and takes its turn with everyone else: whoever is inside its transaction must not wait for anything else that
     * uses the database.
     */
    readonly orm: (options: OrmOptions) => Effect.Effect<MikroORM, StorageError, Scope.Scope>
    readonly resources: Read<StoredResources>
    /** The version of what is stored now. */
    readonly resourcesVersion: Read<number>
    /** Answers the new version. */
    readonly change: (changes: ResourceChanges) => Effect.Effect<number, StorageError | StaleResources>
    readonly seeds: Read<ReadonlyArray<SeedRecord>>

    /**
     * Takes the network over: the next epoch, and a lease from now on. Only where the lease ran out or was given back,
     * is this holder's own, or its holder is gone. Makes the pipeline row if there is none.
     */
    readonly claim: (network: string, lease: Lease) => Effect.Effect<Owner, StorageError | Held>
    /** The lease begins anew, `ms` from now on. */
    readonly renew: (owner: Owner, ms: number) => Write<void>
    /** Gives the lease back: another process may claim at once. */
    readonly release: (owner: Owner) => Write<void>
    readonly pipeline: (network: string) => Read<Pipeline | null>
    /** Stores the resolved start as the first `minted` and checkpoint, unless there is one. */
    readonly begin: (owner: Owner, start: Cursor) => Write<void>
    /**
     * Mints a batch in one transaction. A match whose newest life has not ended is left out; one whose newest life has
     * ended opens the next; one that has no row where a journal gap may have left none opens life 1 + the number of
     * invalidations. Feed positions are taken for all shown matches at once.
     *
     * Hits of gated monitors are recorded and folded here (semantics, 'Gates'); one that is recorded already is ignored.
     * Those of another revision than their monitor has now are folded among themselves and not recorded.
     * Rows of the sink `actions` are stored as delivered where `actions` is given, each with the event of its match and a
     * delivery to each action that is subscribed to its monitor.
     * What a gate emits is minted with them: rows without a slot; several members share an `emission`, which is also the
     * `digest` of their rows, and each sink has them one behind another.
     */
    readonly mint: (owner: Owner, input: MintInput) => Write<Minted>
    /** Mints late finds: no slot, no move of `minted`; what has another hash than the recorded one is left out. */
    readonly mintLate: (owner: Owner, input: LateMintInput) => Write<Minted>
    /**
     * Writes outcomes and marks rows offered, alone or as digests, in one transaction. An outcome of a row that is not owed
     * changes nothing. A row that is offered already goes over to another digest.
     */
    readonly settle: (
      owner: Owner,
      input: {
        readonly outcomes: ReadonlyArray<Outcome>
        readonly offered: ReadonlyArray<number>
        readonly digests?: ReadonlyArray<Digest>
        /** Attempts that the next run counts on from. */
        readonly tried?: ReadonlyArray<Tried>
      },
    ) => Write<void>
    /** Moves the checkpoint forward; at most to `minted`, never back. */
    readonly checkpoint: (owner: Owner, cursor: Cursor) => Write<void>
    /** Lets the network rest, or go on, also over restarts. */
    readonly pause: (owner: Owner, paused: boolean) => Write<void>

    /**
     * The first step of taking back: records what is to be done, so that every later process finishes it. Where one is
     * recorded already, the lower `from` (with its cause) wins, and its retracting starts anew.
     */
    readonly invalidate: (owner: Owner, what: { readonly from: Cursor; readonly cause: string }) => Write<void>
    /** What is being taken back, or null. */
    readonly invalidation: (network: string) => Read<Invalidation | null>
    /**
     * The next step: ends up to `limit` matches behind `from`, in cursor order, in one transaction. Their rows that were
     * never attempted are cancelled, those offered are discarded, and each that may have been heard of (offered,
     * delivered, dead or discarded) gets a row of kind `retracted`, pending, without a slot; what the feed showed gets
     * its retraction there. Members of an emission lie where its newest member lies, and end together. Dead retractions behind `from` are owed again. Then,
     * within the same limit, hits of gates behind `from` are removed, and survivors of emissions that ended are held again if
     * they are of the monitor's present revision. To be repeated until `done`. With `terms` the retractions for the sink `actions`
     * are stored as delivered, each with an event for the actions that got that of the match.
     */
    readonly retract: (owner: Owner, limit: number, terms?: EventTerms) => Write<Retracted>
    /**
     * The last step: `minted` and checkpoint back to `from`, hashes and records behind it removed, `effectiveFrom` of monitors lowered
     * to it, the record removed; and what gates recorded since the steps is treated like what they found.
     *
     * @param journalDepth how far behind the checkpoint rows are kept, in primaries
     */
    readonly rewind: (owner: Owner, journalDepth: number) => Write<Rewound>
    /** Owed rows of a network's sink, of one kind or both, in `seq` order behind `afterSeq`. */
    readonly owed: (
      network: string,
      sink: string,
      page: { readonly kind?: "match" | "retracted"; readonly afterSeq: number; readonly limit: number },
    ) => Read<ReadonlyArray<DeliveryRow>>
    /** The cursors of owed rows that hold a slot, with how many rows each, in cursor order. */
    readonly openSlots: (network: string) => Read<ReadonlyArray<{ readonly cursor: Cursor; readonly rows: number }>>
    /** Sinks that a network owes rows to. */
    readonly owedSinks: (network: string) => Read<ReadonlyArray<string>>
    /** Owed and dead rows, and deliveries to actions that are not over, that a deletion would take away. */
    readonly debts: (by: { readonly network?: string; readonly monitor?: string; readonly sink?: string }) => Read<{
      readonly owed: number
      readonly dead: number
      readonly actions: number
    }>
    /** Recorded hashes at or before a primary, newest first. */
    readonly anchors: (network: string, atOrBefore: number, limit: number) => Read<ReadonlyArray<Anchor>>
    /** What a network's source keeps, in the order of key and value, behind one of them. */
    readonly records: (
      network: string,
      page: { readonly after: RecordId | null; readonly limit: number },
    ) => Read<ReadonlyArray<SourceRecord>>
    /**
     * Makes events of rows that are owed to the sink `actions`: they were stored while no program with actions ran. Up to
     * `limit`; answers how many there were.
     */
    readonly emitOwed: (owner: Owner, terms: EventTerms, limit: number) => Write<number>
    /** Tells after commits of this process that wrote events of matches. */
    readonly newEvents: Stream.Stream<void>
    /** The state of a match that an event was made of; null if there is none, or none any more. */
    readonly matchState: (matchId: string) => Read<MatchState | null>
    /** Removes what no one needs any more, in a bounded transaction; false when nothing was left to remove. */
    readonly prune: (owner: Owner, input: PruneInput) => Write<boolean>

    /** Items of one network behind `after` (and at or before `upTo`), in position order. */
    readonly feedPage: (page: FeedPage) => Read<ReadonlyArray<StoredFeedItem>>
    /** The newest position after commits of any process that wrote feed items, where the database tells; it may leave some out. */
    readonly feedGrowth: Stream.Stream<{ readonly network: string; readonly position: number }>
    /** Every network that the feed has ever known, deleted ones left out. */
    readonly feedStates: (network?: string) => Read<ReadonlyArray<FeedState>>

    /** In the order of dying, behind a place in it. */
    readonly deadLetters: (
      filter: LetterFilter,
      page: { readonly after: number; readonly limit: number },
    ) => Read<ReadonlyArray<DeadLetterRow>>
    /** As cheap with a million letters as with one. */
    readonly deadLetterCount: (filter: LetterFilter) => Read<number>
    /** How many of the next ones there are, up to `limit`, and the place of the last of them: read from an index alone. */
    readonly deadLettersBetween: (
      filter: LetterFilter,
      page: { readonly after: number; readonly upTo: number; readonly limit: number },
    ) => Read<{ readonly letters: number; readonly last: number }>
    /** How many there are of each sink and monitor that has any; as cheap with a million letters as with one. */
    readonly deadLetterCounts: (network: string) => Read<ReadonlyArray<DeadLetterCount>>
    readonly deadLetter: (network: string, seq: number) => Read<DeadLetterRow | null>
    /** Whether the retraction of another life of a letter's match is still owed to its sink. */
    readonly isRetractionOwed: (letter: Pick<DeadLetterRow, "network" | "sink" | "matchId" | "cursor">) => Read<boolean>
    /**
     * How the replay of a dead letter ended: one that was delivered is a letter no more, one that failed keeps its place and
     * its time, with the new attempts and reason. What is no letter any more stays as it is, and the answer is false. Until
     * it ended, a letter that is replayed is a letter like any other. With `terms`, one of the sink `actions` whose match
     * stands becomes an event in the same transaction.
     */
    readonly replayed: (owner: Owner, outcome: Outcome, terms?: EventTerms) => Write<boolean>
    /** Gives dead letters up; how many there were. Their matches can still be retracted. */
    readonly discard: (owner: Owner, seqs: ReadonlyArray<number>) => Write<number>
    /**
     * Up to `limit` retractions that died at a sink are owed again, in the order of dying; answers their rows. Left out are
     * those of a match that stands in a later life: the receiver would take the wrong one back.
     */
    readonly offerRetractions: (owner: Owner, sink: string, limit: number) => Write<ReadonlyArray<DeliveryRow>>
    /** When the oldest row that a network owes a sink was written, in ms; null when it owes none. */
    readonly oldestOwed: (network: string, sink: string) => Read<number | null>
    /** How many of the next rows in `seq` order are owed, up to `limit`, and the last of them: read from an index alone. */
    readonly countOwed: (
      network: string,
      sink: string,
      page: { readonly afterSeq: number; readonly limit: number },
    ) => Read<{ readonly rows: number; readonly lastSeq: number }>
  }
>()("blockwatcher/Storage") {}
