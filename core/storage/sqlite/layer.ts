import { Clock, Effect, Layer, PubSub, type Scope, Stream } from "effect"
import { Storage } from "../storage.ts"
import { connection as makeConnection } from "./connection.ts"
import { makeDeadLetterReads, makeDeadLetterWrites } from "./dead-letters.ts"
import { makeFeedReads } from "./feed.ts"
import { makeMint } from "./mint.ts"
import type { OpenError } from "../open-error.ts"
import { open } from "./open.ts"
import { openOrm } from "./orm.ts"
import { rows } from "./native.ts"
import { makePrune } from "./prune.ts"
import { releaseRows, removeNetwork } from "./remove.ts"
import { makeResources, RESOURCES, versionIn } from "../resources.ts"
import { makeRewind } from "./rewind.ts"
import { makeRowReads } from "./rows.ts"
import { makeSettle } from "./settle.ts"
import { sql } from "./sql.ts"
import { makeOwedEvents } from "./owed-events.ts"
import { makeInvalidationRead, makeRetract } from "./taking-back.ts"
import { makeWriter } from "./writer.ts"

const at = <A, E>(f: (now: number) => Effect.Effect<A, E>) => Effect.flatMap(Clock.currentTimeMillis, f)

const make = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Storage["Service"], OpenError, Scope.Scope> {
  const connection = makeConnection(yield* open(path))
  const { native, run } = connection
  const newEvents = yield* PubSub.sliding<void>(1)
  const { write, writeAs } = yield* makeWriter(connection, () => void PubSub.publishUnsafe(newEvents, undefined))
  const resources = makeResources(
    // One connection sees one moment as long as nobody else has a turn.
    { snapshot: connection.unit, unit: connection.unit },
    {
      lockVersion: versionIn,
      release: async (em, { discard = [] }, at) => {
        for (const by of discard) await releaseRows(em, by, at)
      },
      removeNetwork,
    },
  )
  const version = rows<readonly [number]>(native, sql.counter)
  const { mint, mintLate } = makeMint(native)
  const settle = makeSettle(native)
  const prune = makePrune(native)
  const invalidation = makeInvalidationRead(native)
  const { invalidate, retract, remember } = makeRetract(native)
  const rewind = makeRewind(native)
  const reads = makeRowReads(native)
  const existing = native.prepare(sql.exists)
  const exists = (network: string): boolean => existing.get(network) !== undefined
  const feed = makeFeedReads(native)
  const deadLetters = makeDeadLetterReads(native)
  const letters = makeDeadLetterWrites(native)
  const { emitOwed } = makeOwedEvents(native)

  return Storage.of({
    database: "sqlite",
    orm: (options) => openOrm(connection, path, options),
    resources: resources.read,
    resourcesVersion: run("resourcesVersion", () => version.get(RESOURCES)![0]),
    seeds: resources.seeds,
    change: (changes) => at((now) => resources.change(changes, now)),

    claim: (network, lease) =>
      at((now) => write("claim", (group) => group.networkOrNew(network).claim(lease, now, exists(network)))).pipe(
        Effect.flatMap(Effect.fromResult),
      ),
    renew: (owner, ms) => at((now) => writeAs("renew", owner, (_, network) => network.renew(ms, now))),
    release: (owner) => writeAs("release", owner, (_, network) => network.release()),
    begin: (owner, start) => at((now) => writeAs("begin", owner, (_, network) => network.begin(start, now))),
    mint: (owner, input) => at((now) => writeAs("mint", owner, (group, network) => mint(group, network, input, now))),
    mintLate: (owner, input) =>
      at((now) => writeAs("mintLate", owner, (group, network) => mintLate(group, network, input, now))),
    settle: (owner, input) =>
      at((now) => writeAs("settle", owner, (group, network) => settle(group, network, input, now))),
    checkpoint: (owner, cursor) =>
      at((now) => writeAs("checkpoint", owner, (_, network) => network.advanceCheckpoint(cursor, now))),
    pause: (owner, paused) => writeAs("pause", owner, (_, network) => network.pause(paused)),
    prune: (owner, input) => at((now) => writeAs("prune", owner, (_, network) => prune(network, input, now))),

    invalidate: (owner, what) => writeAs("invalidate", owner, (_, network) => invalidate(network, what)),
    invalidation: (network) => run("invalidation", () => invalidation(network)),
    retract: (owner, limit, terms) =>
      at((now) => writeAs("retract", owner, (group, network) => retract(group, network, limit, terms, now))).pipe(
        Effect.map((step) => remember(owner.network, step)),
      ),
    rewind: (owner, journalDepth) =>
      at((now) => writeAs("rewind", owner, (_, network) => rewind(network, journalDepth, now))).pipe(
        Effect.flatMap(Effect.fromResult),
      ),

    pipeline: (network) => run("pipeline", () => reads.pipeline(network)),
    owed: (network, sink, page) => run("owed", () => reads.owed(network, sink, page)),
    openSlots: (network) => run("openSlots", () => reads.openSlots(network)),
    owedSinks: (network) => run("owedSinks", () => reads.owedSinks(network)),
    oldestOwed: (network, sink) => run("oldestOwed", () => reads.oldestOwed(network, sink)),
    countOwed: (network, sink, page) => run("countOwed", () => reads.countOwed(network, sink, page)),
    debts: (by) => run("debts", () => reads.debts(by)),
    anchors: (network, atOrBefore, limit) => run("anchors", () => reads.anchors(network, atOrBefore, limit)),
    records: (network, page) => run("records", () => reads.records(network, page)),
    emitOwed: (owner, terms, limit) =>
      at((now) => writeAs("emitOwed", owner, (group, network) => emitOwed(group, network, terms, limit, now))),
    newEvents: Stream.fromPubSub(newEvents),
    matchState: (matchId) => run("matchState", () => reads.matchState(matchId)),

    feedPage: (page) => run("feedPage", () => feed.page(page)),
    // SQLite does not tell of commits; readers look by themselves.
    feedGrowth: Stream.never,
    feedStates: (network) => run("feedStates", () => feed.states(network)),

    deadLetters: (filter, page) => run("deadLetters", () => deadLetters.list(filter, page)),
    deadLetterCount: (filter) => run("deadLetterCount", () => deadLetters.count(filter)),
    deadLettersBetween: (filter, page) => run("deadLettersBetween", () => deadLetters.between(filter, page)),
    deadLetter: (network, seq) => run("deadLetter", () => deadLetters.one(network, seq)),
    isRetractionOwed: (letter) => run("isRetractionOwed", () => deadLetters.isRetractionOwed(letter)),
    deadLetterCounts: (network) => run("deadLetterCounts", () => deadLetters.counts(network)),
    replayed: (owner, outcome, terms) =>
      at((now) =>
        writeAs("replayed", owner, (group, network) => letters.replayed(group, network, outcome, terms, now)),
      ),
    discard: (owner, seqs) =>
      at((now) => writeAs("discard", owner, (_, network) => letters.discard(network, seqs, now))),
    offerRetractions: (owner, sink, limit) =>
      writeAs("offerRetractions", owner, (_, network) => letters.offerRetractions(network, sink, limit)),
  })
})

/**
 * Storage in an SQLite file, or in memory with `":memory:"` (gone when the layer closes). Makes the file and its folder,
 * and brings an older database up to date.
 */
export const layerSqlite = (options: { readonly path: string }): Layer.Layer<Storage, OpenError> =>
  Layer.effect(Storage, make(options.path))
