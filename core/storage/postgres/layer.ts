import { type EntityManager, LockMode } from "@mikro-orm/postgresql"
import { Clock, Effect, Layer, PubSub, Redacted, type Scope, Stream } from "effect"
import { Storage } from "../storage.ts"
import type { ResourceChanges } from "../stored.ts"
import { connection as makeConnection } from "./connection.ts"
import {
  countDeadLetters,
  countLettersBetween,
  discard,
  isRetractionOwed,
  offerRetractions,
  readDeadLetter,
  readDeadLetterCounts,
  readDeadLetters,
  replayed,
} from "./dead-letters.ts"
import { emitOwed } from "./events.ts"
import { readFeedPage, readFeedStates } from "./feed.ts"
import { makeGrowth } from "./growth.ts"
import { claim, renew } from "./leases.ts"
import { mint, mintLate } from "./mint.ts"
import { makeNumbers } from "./numbers.ts"
import type { OpenError } from "../open-error.ts"
import { open } from "./open.ts"
import { openOrm } from "./orm.ts"
import { makePrune } from "./prune.ts"
import { makeResources, RESOURCES, versionIn } from "../resources.ts"
import { lockPipelines, networksOf, releaseRows, removeNetwork } from "./remove.ts"
import { rewind } from "./rewind.ts"
import {
  countOwed,
  readAnchors,
  readDebts,
  readMatchState,
  readOldestOwed,
  readOpenSlots,
  readOwed,
  readOwedSinks,
  readPipeline,
  readRecords,
} from "./rows.ts"
import { settle } from "./settle.ts"
import { sql } from "./sql.ts"
import { invalidate, makeRetract, readInvalidation } from "./taking-back.ts"
import { makeWriter } from "./writer.ts"

const at = <A, E>(f: (now: number) => Effect.Effect<A, E>) => Effect.flatMap(Clock.currentTimeMillis, f)

/** Changes take turns: whoever comes second sees the version of the first. */
const lockVersion = (em: EntityManager): Promise<number> => versionIn(em, { lockMode: LockMode.PESSIMISTIC_WRITE })

/**
 * The writers wait whose rows the changes go by: monitors take effect by a batch, what their gates hold goes with them, and
 * rows are let go. No other change moves a monitor meanwhile.
 */
const release = async (em: EntityManager, changes: ResourceChanges, now: number): Promise<void> => {
  const { discard = [], putMonitors = [], deleteMonitors = [], deleteNetworks = [] } = changes
  const definitions = putMonitors.map(({ definition }) => definition)
  const monitors = [...definitions.map(({ id }) => id), ...deleteMonitors]
  const named = [
    ...definitions.map(({ network }) => network),
    ...deleteNetworks,
    ...(monitors.length > 0 ? await networksOf(em, monitors) : []),
  ]
  const locked = await lockPipelines(em, discard.length > 0 ? "all" : new Set(named))
  for (const by of discard) await releaseRows(em, locked, by, now)
}

/** Its rows would be sent by no one: whoever repeats it finds them there and leaves them out. */
const once = { repeatable: false }

const make = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
): Effect.fn.Return<Storage["Service"], OpenError, Scope.Scope> {
  const opened = yield* open(url)
  const connection = makeConnection(opened)
  const growth = yield* makeGrowth(opened)
  const newEvents = yield* PubSub.sliding<void>(1)
  const { write, writeAs } = yield* makeWriter(connection, makeNumbers(), growth.tell, () => {
    PubSub.publishUnsafe(newEvents, undefined)
  })
  const { read } = connection
  const resources = makeResources(connection, { lockVersion, release, removeNetwork })
  const prune = makePrune()
  const { retract, remember } = makeRetract()

  return Storage.of({
    database: "postgres",
    orm: (options) => openOrm(opened, options),
    resources: resources.read,
    resourcesVersion: read("resourcesVersion", (session) =>
      Effect.map(session.all<readonly [number]>(sql.counter, [RESOURCES]), ([row]) => row![0]),
    ),
    seeds: resources.seeds,
    change: (changes) => at((now) => resources.change(changes, now)),

    claim: (network, lease) => write("claim", network, (group) => claim(group, lease)),
    renew: (owner, ms) => writeAs("renew", owner, (group) => renew(group, ms)),
    release: (owner) => writeAs("release", owner, ({ network }) => Effect.sync(() => network.release())),
    begin: (owner, start) =>
      at((now) => writeAs("begin", owner, ({ network }) => Effect.sync(() => network.begin(start, now)))),
    mint: (owner, input) => at((now) => writeAs("mint", owner, (group) => mint(group, input, now), once)),
    mintLate: (owner, input) => at((now) => writeAs("mintLate", owner, (group) => mintLate(group, input, now), once)),
    settle: (owner, input) => at((now) => writeAs("settle", owner, (group) => settle(group, input, now))),
    checkpoint: (owner, cursor) =>
      at((now) =>
        writeAs("checkpoint", owner, ({ network }) => Effect.sync(() => network.advanceCheckpoint(cursor, now))),
      ),
    pause: (owner, paused) => writeAs("pause", owner, ({ network }) => Effect.sync(() => network.pause(paused))),
    prune: (owner, input) => at((now) => writeAs("prune", owner, (group) => prune(group, input, now))),

    invalidate: (owner, what) => writeAs("invalidate", owner, (group) => invalidate(group, what)),
    invalidation: (network) => read("invalidation", (session) => readInvalidation(session, network)),
    retract: (owner, limit, terms) =>
      at((now) => writeAs("retract", owner, (group) => retract(group, limit, terms, now))).pipe(
        Effect.map((step) => remember(owner.network, step)),
      ),
    rewind: (owner, journalDepth) =>
      at((now) => writeAs("rewind", owner, (group) => rewind(group, journalDepth, now))).pipe(
        Effect.flatMap((result) => result),
      ),

    pipeline: (network) => read("pipeline", (session) => readPipeline(session, network)),
    owed: (network, sink, page) => read("owed", (session) => readOwed(session, network, sink, page)),
    openSlots: (network) => read("openSlots", (session) => readOpenSlots(session, network)),
    owedSinks: (network) => read("owedSinks", (session) => readOwedSinks(session, network)),
    oldestOwed: (network, sink) => read("oldestOwed", (session) => readOldestOwed(session, network, sink)),
    countOwed: (network, sink, page) => read("countOwed", (session) => countOwed(session, network, sink, page)),
    debts: (by) => read("debts", (session) => readDebts(session, by)),
    anchors: (network, atOrBefore, limit) =>
      read("anchors", (session) => readAnchors(session, network, atOrBefore, limit)),
    records: (network, page) => read("records", (session) => readRecords(session, network, page)),
    emitOwed: (owner, terms, limit) =>
      at((now) => writeAs("emitOwed", owner, (group) => emitOwed(group, terms, limit, now))),
    newEvents: Stream.fromPubSub(newEvents),
    matchState: (matchId) => read("matchState", (session) => readMatchState(session, matchId)),

    feedPage: (page) => read("feedPage", (session) => readFeedPage(session, page)),
    feedGrowth: growth.told,
    feedStates: (network) => read("feedStates", (session) => readFeedStates(session, network)),

    deadLetters: (filter, page) => read("deadLetters", (session) => readDeadLetters(session, filter, page)),
    deadLetterCount: (filter) => read("deadLetterCount", (session) => countDeadLetters(session, filter)),
    deadLettersBetween: (filter, page) =>
      read("deadLettersBetween", (session) => countLettersBetween(session, filter, page)),
    deadLetter: (network, seq) => read("deadLetter", (session) => readDeadLetter(session, network, seq)),
    isRetractionOwed: (letter) => read("isRetractionOwed", (session) => isRetractionOwed(session, letter)),
    deadLetterCounts: (network) => read("deadLetterCounts", (session) => readDeadLetterCounts(session, network)),
    replayed: (owner, outcome, terms) =>
      at((now) => writeAs("replayed", owner, (group) => replayed(group, outcome, terms, now))),
    discard: (owner, seqs) => at((now) => writeAs("discard", owner, (group) => discard(group, seqs, now))),
    offerRetractions: (owner, sink, limit) =>
      writeAs("offerRetractions", owner, (group) => offerRetractions(group, sink, limit), once),
  })
})

/** Storage in the PostgreSQL database of an address. */
export const layer = (url: string | Redacted.Redacted): Layer.Layer<Storage, OpenError> =>
  Layer.effect(Storage, make(typeof url === "string" ? Redacted.make(url) : url))
