import { defineEntity, p } from "@mikro-orm/core"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { layerSqlite } from "../../../../core/storage/sqlite/layer.ts"
import { open } from "../../../../core/storage/sqlite/open.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, lease, match } from "../builders.ts"
import { databaseFiles } from "./files.ts"

const file = databaseFiles()

const Note = defineEntity({
  name: "Note",
  tableName: "notes",
  properties: { id: p.integer().primary(), text: p.text() },
})

/** A storage, and a program's MikroORM over it. */
const opened = Effect.fnUntraced(function* (path: string) {
  const storage = Context.get(yield* Layer.build(layerSqlite({ path })), Storage)
  const orm = yield* storage.orm({ entities: [Note] })
  const execute = (statement: string) => Effect.promise(() => orm.em.getConnection().execute(statement))
  yield* execute("create table notes (id integer primary key, text text not null)")
  const write = (text: string) =>
    Effect.tryPromise(async () => {
      const em = orm.em.fork()
      em.create(Note, { text })
      await em.flush()
    })
  const texts = Effect.promise(async () => (await orm.em.fork().find(Note, {})).map(({ text }) => text))
  return { storage, execute, write, texts }
})

describe("a program's transaction over the runtime's connection", () => {
  it.live("waits for the lock that another connection holds, and lets others have their turn meanwhile", () =>
    Effect.gen(function* () {
      const path = file("locked.db")
      const { storage, write, texts } = yield* opened(path)
      const { native: other } = yield* open(path)
      other.exec("BEGIN IMMEDIATE")
      const writing = yield* Effect.forkChild(write("late"), { startImmediately: true })
      for (let reads = 0; reads < 20; reads++) {
        yield* Effect.sleep("1 millis")
        assert.isNull(yield* storage.pipeline("net"))
      }
      assert.isUndefined(writing.pollUnsafe())
      other.exec("COMMIT")
      yield* Fiber.join(writing)
      assert.deepStrictEqual(yield* texts, ["late"])
    }).pipe(Effect.scoped),
  )

  it.live("lets go of the connection when SQLite has taken it back already, as on a full disk", () =>
    Effect.gen(function* () {
      const { storage, execute, write, texts } = yield* opened(file("full.db"))
      const [{ page_count: pages }] = (yield* execute("pragma page_count")) as [{ readonly page_count: number }]
      yield* execute(`pragma max_page_count = ${pages + 2}`)
      assert.isTrue((yield* Effect.exit(write("x".repeat(1_000_000))))._tag === "Failure")
      yield* execute("pragma max_page_count = 1000000")
      yield* write("small")
      assert.deepStrictEqual(yield* texts, ["small"])
      const owner = yield* storage.claim("net", lease())
      yield* storage.mint(owner, batch([match(at(1))]))
    }).pipe(Effect.scoped),
  )
})
