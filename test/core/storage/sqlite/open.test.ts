import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { migrations } from "../../../../core/storage/migrations/index.ts"
import { DatabaseTooNew, DatabaseUnusable } from "../../../../core/storage/open-error.ts"
import { layerSqlite } from "../../../../core/storage/sqlite/layer.ts"
import { open } from "../../../../core/storage/sqlite/open.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, lease, match } from "../builders.ts"
import { databaseFiles } from "./files.ts"

const file = databaseFiles()
const use = <A, E>(path: string, body: (storage: Storage["Service"]) => Effect.Effect<A, E>) =>
  Storage.use(body).pipe(Effect.provide(layerSqlite({ path }), { local: true }))

describe("opening a database", () => {
  it.effect("makes the folder and the file, and finds them again", () =>
    Effect.gen(function* () {
      const path = file("deep/down/storage.db")
      const owner = yield* use(path, (storage) =>
        Effect.gen(function* () {
          const owner = yield* storage.claim("net", lease())
          yield* storage.begin(owner, at(0))
          yield* storage.mint(owner, batch([match(at(1))]))
          return owner
        }),
      )
      assert.isTrue(existsSync(path))
      const next = yield* use(path, (storage) =>
        Effect.gen(function* () {
          assert.lengthOf(yield* storage.owed("net", "log", { afterSeq: 0, limit: 10 }), 1)
          return yield* storage.claim("net", lease())
        }),
      )
      assert.strictEqual(next.epoch, owner.epoch + 1)
    }),
  )

  it.effect("keeps dead letters and all else in the file; in memory nothing outlasts its process", () =>
    Effect.gen(function* () {
      const letters = (storage: Storage["Service"]) =>
        Effect.map(storage.deadLetters({ network: "net" }, { after: 0, limit: 10 }), (found) =>
          found.map(({ reason, payload }) => ({ reason, payload })),
        )
      const failed = match(at(1), { failure: "permanent: predicate: no" })
      for (const [path, kept] of [
        [file("kept.db"), [{ reason: "permanent: predicate: no", payload: failed.payload }]],
        [":memory:", []],
      ] as const) {
        yield* use(path, (storage) =>
          Effect.gen(function* () {
            const owner = yield* storage.claim("net", lease())
            yield* storage.begin(owner, at(0))
            yield* storage.mint(owner, batch([failed]))
            assert.lengthOf(yield* letters(storage), 1)
          }),
        )
        assert.deepStrictEqual(yield* use(path, letters), [...kept])
      }
    }),
  )

  it.effect("brings a database of the first version up to date, and goes on with its rows", () =>
    Effect.gen(function* () {
      const path = file("first.db")
      yield* use(path, (storage) =>
        Effect.gen(function* () {
          const owner = yield* storage.claim("net", lease())
          yield* storage.begin(owner, at(3))
          const failed = match(at(5), { failure: "permanent: predicate: no" })
          yield* storage.mint(owner, batch([match(at(4)), failed], { checkpoint: at(4) }))
        }),
      )
      const older = new DatabaseSync(path)
      for (const name of ["inserted", "came", "left", "deleted"]) older.exec(`DROP TRIGGER dead_letters_${name}`)
      for (const name of [
        "deliveries_letters",
        "deliveries_letters_sink",
        "deliveries_letters_monitor",
        "deliveries_letters_sink_monitor",
        "deliveries_dead_retracted_sink",
        "matches_kept",
      ]) {
        older.exec(`DROP INDEX ${name}`)
      }
      for (const name of [
        "gate_hits",
        "dead_letter_counts",
        "source_records",
        "blockwatcher_events",
        "blockwatcher_action_deliveries",
        "blockwatcher_handled_deliveries",
        "blockwatcher_provider_calls",
        "blockwatcher_runs",
      ]) {
        older.exec(`DROP TABLE ${name}`)
      }
      for (const [table, column] of [
        ["sinks", "paused"],
        ["matches", "kept_primary"],
        ["matches", "kept_secondary"],
        ["deliveries", "dead_monitor"],
        ["deliveries", "dead_kind"],
      ]) {
        older.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`)
      }
      for (const column of ["start_primary", "start_secondary", "high_primary", "swept_primary", "pruned_primary"]) {
        older.exec(`ALTER TABLE pipelines DROP COLUMN ${column}`)
      }
      older.exec("CREATE INDEX deliveries_dead ON deliveries (network, died) WHERE died IS NOT NULL")
      older.exec("CREATE INDEX deliveries_dead_sink ON deliveries (network, sink, died) WHERE died IS NOT NULL")
      older.exec("DROP TABLE invalidations")
      older.exec("DROP INDEX deliveries_dead_retracted")
      older.exec("DELETE FROM counters WHERE name IN ('resources', 'hit')")
      older.exec("DELETE FROM mikro_orm_migrations WHERE name <> '0001-initial'")
      older.close()
      yield* use(path, (storage) =>
        Effect.gen(function* () {
          const owner = yield* storage.claim("net", lease())
          assert.deepInclude(yield* storage.pipeline("net"), { checkpoint: at(4), start: null })
          assert.strictEqual(yield* storage.resourcesVersion, 0)
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

  it.effect("leaves nothing but the file behind when it closes", () =>
    Effect.gen(function* () {
      const path = file("closed/storage.db")
      yield* use(path, (storage) => storage.claim("net", lease()))
      assert.isFalse(existsSync(`${path}-wal`))
    }),
  )

  it.effect("refuses what comes after the layer closed", () =>
    Effect.gen(function* () {
      const storage = yield* use(file("late.db"), Effect.succeed)
      const error = yield* Effect.flip(storage.claim("net", lease()))
      assert.deepInclude(error, { reason: "the storage is closed", retryable: false })
    }),
  )

  it.effect("refuses the database of a newer version and names both", () =>
    Effect.gen(function* () {
      const path = file("newer.db")
      yield* use(path, (storage) => storage.claim("net", lease()))
      const other = new DatabaseSync(path)
      other.exec("INSERT INTO mikro_orm_migrations (name) VALUES ('9999-from-the-future')")
      other.close()
      const error = yield* Effect.flip(use(path, (storage) => storage.claim("net", lease())))
      assert.instanceOf(error, DatabaseTooNew)
      assert.include(error.message, "9999-from-the-future")
      assert.include(error.message, migrations.at(-1)!.name)
      assert.include(error.message, "Start the newer version")
    }),
  )

  it.effect("says of a file that is no database what to do", () =>
    Effect.gen(function* () {
      const path = file("garbage.db")
      writeFileSync(path, "this is not a database, only text that is long enough to be read as a header".repeat(50))
      const error = yield* Effect.flip(use(path, (storage) => storage.claim("net", lease())))
      assert.instanceOf(error, DatabaseUnusable)
      assert.include(error.message, path)
      assert.include(error.message, "no SQLite database or is damaged")
    }),
  )

  it.effect("says of a path that cannot be a file what to do", () =>
    Effect.gen(function* () {
      const folder = file("a-folder")
      mkdirSync(folder)
      writeFileSync(file("a-file"), "")
      for (const path of [folder, `${file("a-file")}/storage.db`]) {
        const error = yield* Effect.flip(use(path, (storage) => storage.claim("net", lease())))
        assert.instanceOf(error, DatabaseUnusable)
        assert.include(error.message, "Check that the path is a file")
      }
      assert.isTrue(existsSync(dirname(folder)))
    }),
  )

  it.live("lets several open one new file at the same time", () =>
    Effect.gen(function* () {
      const path = file("together.db")
      yield* Effect.all(
        Array.from({ length: 3 }, () => use(path, (storage) => storage.claim("net", lease()))),
        { concurrency: "unbounded" },
      )
      const owner = yield* use(path, (storage) => storage.claim("net", lease()))
      assert.strictEqual(owner.epoch, 4)
    }),
  )

  it.effect("has in its migrations what its entities say", () =>
    Effect.gen(function* () {
      const { orm, native } = yield* open(":memory:")
      const columns = native.prepare<{ readonly name: string; readonly notnull: number }>(
        'SELECT name, "notnull" FROM pragma_table_info(?)',
      )
      for (const meta of orm.getMetadata().getAll().values()) {
        const declared = meta.props.map((prop) => ({ name: prop.fieldNames[0]!, notnull: prop.nullable ? 0 : 1 }))
        assert.sameDeepMembers(columns.all(meta.tableName), declared, meta.tableName)
      }
    }),
  )
})
