import { assert, describe, it } from "@effect/vitest"
import { DatabaseSync } from "node:sqlite"
import { Effect } from "effect"
import { networkNow, resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, recorder, transfer } from "./support.ts"

describe("a definition that is broken in the database while networks run", () => {
  it.live("does not end networks that have nothing to do with it", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const a = recorder("a")
      const runtime = yield* startRuntime({
        path,
        plugins: [scriptedSource(feed)],
        resources: definitions([a.sink, recorder("other").sink]),
      })
      const now = networkNow(runtime, "test")
      yield* waitUntil(
        "it is at the head",
        Effect.map(now, ({ checkpoint }) => (checkpoint?.cursor.primary ?? 0) >= 2),
      )
      const database = new DatabaseSync(path)
      database.exec(`update sinks set definition = '{}' where id = 'other'`)
      database.close()
      yield* resourcesOf(runtime).rewindNetwork("test", { primary: 1, secondary: 2_147_483_647 })
      feed.append([transfer(3)])
      yield* waitUntil(
        "it goes on",
        Effect.map(now, ({ checkpoint }) => (checkpoint?.cursor.primary ?? 0) >= 3),
      )
      assert.strictEqual((yield* now).error, null)
    }),
  )
})
