import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { DatabaseTooNew, DatabaseUnusable } from "../../../../core/storage/open-error.ts"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import { open } from "../../../../core/storage/postgres/open.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { POSTGRES_PASSWORD } from "../../../support/postgres.ts"
import { at, batch, lease, match } from "../builders.ts"
import { nameIn } from "./databases.ts"
import { postgresServer } from "./server.ts"

const postgres = postgresServer()

const use = <A, E>(url: string, body: (storage: Storage["Service"]) => Effect.Effect<A, E>) =>
  Storage.use(body).pipe(Effect.provide(layerPostgres({ url }), { local: true }))

describe("opening a database", () => {
  it.effect("makes its tables once, and finds what stands in them again", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      const owner = yield* use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* storage.claim("net", lease())
          yield* storage.begin(owner, at(0))
          yield* storage.mint(owner, batch([match(at(1))]))
          return owner
        }),
      )
      const next = yield* use(url, (storage) =>
        Effect.gen(function* () {
          assert.lengthOf(yield* storage.owed("net", "log", { afterSeq: 0, limit: 10 }), 1)
          return yield* storage.claim("net", lease())
        }),
      )
      assert.strictEqual(next.epoch, owner.epoch + 1)
    }),
  )

  it.effect("brings an older database up to date, with what stands in it", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      yield* use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* storage.claim("net", lease())
          yield* storage.begin(owner, at(3))
          const failed = match(at(5), { failure: "permanent: predicate: no" })
          yield* storage.mint(owner, batch([match(at(4)), failed], { checkpoint: at(4) }))
        }),
      )
      const older = `
        drop function count_dead_letters_inserted, count_dead_letters_updated, count_dead_letters_deleted cascade;
        drop table gate_hits, dead_letter_counts, invalidations, source_records, blockwatcher_events,
          blockwatcher_action_deliveries, blockwatcher_handled_deliveries, blockwatcher_provider_calls, blockwatcher_runs;
        drop sequence numbers_hit;
        drop index deliveries_dead_retracted, deliveries_dead_retracted_sink;
        alter table sinks drop column paused;
        alter table matches drop column kept_primary, drop column kept_secondary;
        alter table deliveries drop column dead_monitor, drop column dead_kind;
        create index deliveries_dead on deliveries (network, died) where died is not null;
        create index deliveries_dead_sink on deliveries (network, sink, died) where died is not null;
        alter table pipelines drop column start_primary, drop column start_secondary, drop column high_primary,
          drop column swept_primary, drop column pruned_primary;
        delete from counters where name in ('resources', 'hit');
        delete from mikro_orm_migrations where name <> '0001-initial'`
      yield* Effect.promise(() => postgres.server.execute(nameIn(url), older))
      yield* use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* storage.claim("net", lease())
          assert.deepInclude(yield* storage.pipeline("net"), { checkpoint: at(4), start: null })
          const filter = { network: "net", monitor: "transfers" }
          assert.strictEqual(yield* storage.deadLetterCount(filter), 1)
          assert.lengthOf(yield* storage.deadLetters(filter, { after: 0, limit: 10 }), 1)
          assert.strictEqual(yield* storage.deadLetterCount({ ...filter, ended: true }), 0)
          yield* storage.invalidate(owner, { from: at(2), cause: "reorg" })
          assert.deepInclude(yield* storage.retract(owner, 10), { matches: 2, done: true })
          assert.strictEqual(yield* storage.deadLetterCount({ ...filter, ended: true }), 1)
          assert.deepInclude(yield* storage.rewind(owner, 10), { to: at(2), moved: true })
        }),
      )
    }),
  )

  it.live("lets several open a new one at the same time", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      const claim = () => use(url, (storage) => storage.claim("net", lease()))
      yield* Effect.all([claim(), claim(), claim()], { concurrency: "unbounded" })
      assert.strictEqual((yield* claim()).epoch, 4)
    }),
  )

  it.effect("leaves no connection behind when it closes, and refuses what comes later", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      const storage = yield* use(url, Effect.succeed)
      const error = yield* Effect.flip(storage.claim("net", lease()))
      assert.deepInclude(error, { reason: "the storage is closed", retryable: false })
      assert.deepInclude(yield* Effect.flip(storage.pipeline("net")), { _tag: "StorageError", operation: "pipeline" })
      const connected = yield* Effect.promise(() =>
        postgres.server.execute("postgres", `select 1 from pg_stat_activity where datname = '${nameIn(url)}'`),
      )
      assert.lengthOf(connected, 0)
    }),
  )

  it.effect("refuses the database of a newer version and names both", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      yield* use(url, (storage) => storage.claim("net", lease()))
      const newer = "insert into mikro_orm_migrations (name) values ('9999-from-the-future')"
      yield* Effect.promise(() => postgres.server.execute(nameIn(url), newer))
      const error = yield* Effect.flip(use(url, (storage) => storage.claim("net", lease())))
      assert.instanceOf(error, DatabaseTooNew)
      assert.include(error.message, "9999-from-the-future")
      assert.include(error.message, "Start the newer version")
      assert.include(error.message, `postgres://127.0.0.1:${postgres.server.port}/${nameIn(url)}`)
    }),
  )

  const unusable: ReadonlyArray<readonly [string, (url: URL) => void, RegExp]> = [
    ["a server that is not there", (url) => (url.port = "1"), /Check that the server runs at this address/],
    ["a host that is not there", (url) => (url.hostname = "nowhere.invalid"), /Check that the server runs/],
    ["a database that is not there", (url) => (url.pathname = "/not-there"), /Create the database/],
    ["a user that is not there", (url) => (url.username = "not-there"), /Check the user and the password/],
    ["an address without a database", (url) => (url.pathname = ""), /postgres:\/\/user:password@host:port\/database/],
  ]
  for (const [what, change, advice] of unusable) {
    it.live(`says of ${what} what to do, and never the password`, () =>
      Effect.gen(function* () {
        const url = new URL(postgres.server.url("postgres"))
        change(url)
        const error = yield* Effect.flip(use(url.href, (storage) => storage.claim("net", lease())))
        assert.instanceOf(error, DatabaseUnusable)
        assert.match(error.message, advice)
        assert.notInclude(error.message, POSTGRES_PASSWORD)
        assert.notInclude(JSON.stringify(error), POSTGRES_PASSWORD)
      }),
    )
  }

  it.effect("has in its migrations what its entities say", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      const { orm } = yield* open(Redacted.make(url))
      const columns = yield* Effect.promise(() =>
        postgres.server.execute(
          nameIn(url),
          `select table_name, column_name, is_nullable, data_type from information_schema.columns`,
        ),
      )
      for (const meta of orm.getMetadata().getAll().values()) {
        const declared = meta.props.map((prop) => ({
          name: prop.fieldNames[0],
          nullable: prop.nullable === true ? "YES" : "NO",
          type: prop.columnTypes[0] === "int" ? "integer" : prop.columnTypes[0],
        }))
        const made = columns
          .filter((column) => column["table_name"] === meta.tableName)
          .map((column) => ({
            name: column["column_name"],
            nullable: column["is_nullable"],
            type: column["data_type"],
          }))
        assert.sameDeepMembers(made, declared, meta.tableName)
      }
    }),
  )
})
