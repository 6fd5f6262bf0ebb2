import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Metric, References } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { endOf } from "../../../../core/model/cursor.ts"
import type { Owner } from "../../../../core/storage/storage.ts"
import { networkNow, resourcesOf } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { definitions, Gate, startOver, transfer } from "../faults/support.ts"
import { isRetraction, listener, waitForEnd, waitForWords } from "./support.ts"

/** Lines of the log with their level and annotations. */
const logged = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message, fiber }) => {
    const { network } = fiber.getRef(References.CurrentLogAnnotations)
    lines.push(`${logLevel} ${String(network)}: ${String(message)}`)
  })
  return { lines, layer: Logger.layer([logger]) }
}

/** What a counter of the network says; to be called within `counted`. */
const count = (name: string) =>
  Effect.map(PrometheusMetrics.format(), (text) => Number(text.split(`${name}{network="test"} `)[1]?.split("\n", 1)[0]))

/** Metrics of a test's own. */
const counted = Effect.provideServiceEffect(
  Metric.MetricRegistry,
  Effect.sync(() => new Map()),
)

/** A runtime whose journal is pruned on request. */
const startPruned = Effect.fnUntraced(function* (
  feed: ScriptedFeed,
  a: ReturnType<typeof listener>,
  journalDepth: number,
) {
  let owner: Owner | null = null
  const { runtime, storage } = yield* startOver(
    ({ claim }) => ({
      claim: (network, lease) =>
        Effect.tap(claim(network, lease), (claimed) =>
          Effect.sync(() => {
            owner = claimed
          }),
        ),
    }),
    {
      plugins: [scriptedSource(feed)],
      resources: {
        ...definitions([a.sink]),
        networks: [{ id: "test", module: "scripted", config: {}, journalDepth }],
      },
    },
  )
  const prune = Effect.suspend(() =>
    storage.prune(owner!, { journalDepth, feedRetention: 0, actionRetention: 0, limit: 10_000 }),
  )
  return { runtime, storage, prune }
})

const numbered = (blocks: number) => {
  const feed = new ScriptedFeed()
  feed.append(...Array.from({ length: blocks }, (_, i) => [transfer(i + 1)]))
  return feed
}

describe("an invalidation that reaches further back than the journal", () => {
  const log = logged()
  it.live("is told as an error, and what is found again there opens a life of its own", () =>
    Effect.gen(function* () {
      const a = listener("a")
      const feed = numbered(6)
      const { runtime, prune } = yield* startPruned(feed, a, 2)
      yield* waitForEnd(runtime, 6)
      yield* prune
      yield* resourcesOf(runtime).rewindNetwork("test", endOf(1))
      const all = ["+1", "+2", "+3", "+4", "+5", "+6"]
      const again = ["+2", "+3", "+4", "+5", "+6"]
      yield* waitForWords(a, [...all, "-4", "-5", "-6", ...again])
      const [, two, three, four] = a.told
      assert.deepStrictEqual(
        a.told.slice(9, 12).map(({ id }) => id),
        [`${two!.id}-2`, `${three!.id}-2`, `${four!.id}-2`],
      )
      assert.deepStrictEqual(
        log.lines.filter((line) => line.includes("gap")),
        [
          "Error test: journal gap: taken back to 1, but from the checkpoint 6 the journal reaches back 2 only: what was " +
            "delivered before that is not retracted. A larger journal depth prevents it",
        ],
      )
      assert.strictEqual(yield* count("blockwatcher_journal_gap_total"), 1)
      assert.strictEqual(yield* count("blockwatcher_rewinds_refused_total"), 0)
    }).pipe(Effect.provide(log.layer), counted),
  )

  const later = logged()
  it.live("is one also when the checkpoint went back before: rows are gone as they were", () =>
    Effect.gen(function* () {
      const a = listener("a")
      const feed = numbered(9)
      const { runtime, prune } = yield* startPruned(feed, a, 2)
      yield* waitForEnd(runtime, 9)
      yield* prune
      yield* resourcesOf(runtime).pauseNetwork("test")
      yield* resourcesOf(runtime).rewindNetwork("test", endOf(7))
      yield* waitForEnd(runtime, 7)
      yield* resourcesOf(runtime).rewindNetwork("test", endOf(5))
      yield* waitForEnd(runtime, 5)
      yield* resourcesOf(runtime).resumeNetwork("test")
      yield* waitForEnd(runtime, 9)
      // The row of 6 was pruned at the checkpoint 9: what it told is not retracted, and told anew in another life.
      assert.notInclude(a.words(), "-6")
      const six = a.told.filter(({ what }) => what === "+6").map(({ id }) => id)
      assert.strictEqual(new Set(six).size, 2)
      assert.lengthOf(
        later.lines.filter((line) => line.startsWith("Error test: journal gap: taken back to 5")),
        1,
      )
    }).pipe(Effect.provide(later.layer)),
  )
})

describe("an invalidation to a point that is not behind the checkpoint", () => {
  const log = logged()
  it.live("leaves the checkpoint where it is, is counted, and the network goes on", () =>
    Effect.gen(function* () {
      const delivering = new Gate("closed")
      const a = listener("a", { before: (event) => (isRetraction(event) ? Effect.void : delivering.pass) })
      const feed = numbered(5)
      const { runtime, storage } = yield* startPruned(feed, a, 100)
      yield* delivering.reached
      yield* waitUntil("all is minted", () => feed.emitted === 1)
      feed.fork(3, "x", [transfer(40)], [transfer(50)])
      yield* waitUntil(
        "the network waits for the attempt",
        Effect.map(networkNow(runtime, "test"), ({ state }) => state === "INVALIDATING"),
      )
      assert.strictEqual((yield* networkNow(runtime, "test")).checkpoint?.cursor.primary, 0)
      yield* delivering.open
      yield* waitForEnd(runtime, 5)
      assert.strictEqual(yield* count("blockwatcher_rewinds_refused_total"), 1)
      // Those behind the point had been offered to an idle sink at once: it may have heard of them.
      assert.deepStrictEqual(a.standing(), ["1", "2", "3", "40", "50"])
      assert.isNull(yield* storage.invalidation("test"))
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null })
    }).pipe(Effect.provide(log.layer), counted),
  )
})
