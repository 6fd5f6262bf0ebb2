import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { actions, Deposit, eventStore } from "../../examples/actions.ts"
import { Actions, Blockwatcher, layerSqlite, Storage } from "../../core/index.ts"
import { transfer } from "../core/engine/faults/support.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../support/scripted-source.ts"

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

describe("the example of docs/actions.md", () => {
  it("is examples/actions.ts", () => {
    assert.include(read("docs/actions.md"), `\`\`\`ts\n${read("examples/actions.ts")}\`\`\``)
  })

  it.live("credits what stands, takes back what does not, and tells of each credit once", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const storage = yield* Layer.build(layerSqlite({ path: ":memory:" }))
      const runtime = yield* Layer.build(
        Blockwatcher.layer({
          storage: Layer.succeedContext(storage),
          plugins: [scriptedSource(feed)],
          actions,
          eventStore,
          resources: {
            networks: [{ id: "test", module: "scripted", config: {} }],
            monitors: [{ id: "deposits", network: "test", selector: { name: "Transfer" }, sinks: ["actions"] }],
          },
        }),
      )
      const orm = yield* Context.get(storage, Storage).orm({ entities: [Deposit] })
      const amounts = Effect.promise(async () =>
        (await orm.em.fork().find(Deposit, {}))
          .map(({ amount }) => amount)
          .toSorted()
          .join(),
      )
      const { count } = Context.get(runtime, Actions)
      const told = count({ state: "succeeded", action: "notify" }).pipe(Effect.orDie)
      yield* waitUntil(
        "both are credited",
        Effect.map(amounts, (all) => all === "1,2"),
      )
      feed.fork(1, "x", [transfer(30)], [])
      yield* waitUntil(
        "the second is another one",
        Effect.map(amounts, (all) => all === "1,30"),
      )
      yield* waitUntil(
        "each credit is told",
        Effect.map(told, (n) => n === 3),
      )
      assert.strictEqual(yield* count({ state: "failed" }), 0)
    }),
  )
})
