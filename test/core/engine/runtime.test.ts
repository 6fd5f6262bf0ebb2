import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { describe } from "vitest"
import { Blockwatcher, Feed, Resources, type SinkEvent } from "../../../core/index.ts"
import { layerSqlite } from "../../../core/storage/sqlite/layer.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"

const transfer = (value: number) => ({ name: "Transfer", value: BigInt(value) })

describe("a runtime over a scripted feed", () => {
  it.live("delivers what a monitor matches, in order, and the checkpoint follows", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([], [transfer(5), transfer(50)], [], [transfer(500)])
      const seen: Array<SinkEvent> = []
      const runtime = Blockwatcher.layer({
        storage: layerSqlite({ path: ":memory:" }),
        plugins: [scriptedSource(feed)],
        resources: {
          networks: [{ id: "test", module: "scripted", config: { start: 1 } }],
          monitors: [
            {
              id: "large",
              network: "test",
              selector: { name: "Transfer" },
              predicate: "args.value >= 50",
              sinks: ["mine"],
            },
          ],
          sinks: [{ id: "mine", deliver: (event: SinkEvent) => Effect.sync(() => seen.push(event)) }],
        },
      })
      yield* Effect.gen(function* () {
        const resources = yield* Resources
        yield* waitUntil("two matches", () => seen.length === 2)
        assert.deepStrictEqual(
          seen.map((event) => event.type === "match" && event.event["args"]),
          [{ value: "50" }, { value: "500" }],
        )
        yield* waitUntil(
          "the checkpoint is at the head",
          Effect.map(resources.networks, ([network]) => network!.checkpoint?.cursor.primary === 4).pipe(Effect.orDie),
        )
        const [network] = yield* resources.networks
        assert.strictEqual(network!.state, "RUNNING")
        assert.strictEqual(network!.error, null)
        assert.strictEqual(network!.inFlightEvents, 0)
        const live = yield* (yield* Feed).open({ kinds: ["MatchEmitted"], after: "0" })
        const items = yield* live.pipe(Stream.take(2), Stream.runCollect, Effect.timeout("5 seconds"))
        assert.deepStrictEqual(
          items.map((item) => item._tag === "MatchEmitted" && item.match.event["args"]),
          [{ value: "50" }, { value: "500" }],
        )
      }).pipe(Effect.provide(runtime))
    }),
  )
})
