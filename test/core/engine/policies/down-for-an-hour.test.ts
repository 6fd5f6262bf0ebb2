import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Transient } from "../../../../core/index.ts"
import { networkNow, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { isSoak } from "../../../system/seed.ts"
import { allTransfers, definitions, transfer } from "../faults/support.ts"
import { lettersOf } from "../taking-back/support.ts"
import { receiver, type Receiver, waitFor } from "./support.ts"

/** Matches a second, while there are any. */
const RATE = 100

const MINUTES = 60

/** Seconds of each minute in which there are matches: all in a soak, for 360,000 rows take minutes to write. */
const BURST_S = isSoak ? 60 : 4

const second = (n: number, over = 0) => Array.from({ length: RATE }, (_, i) => transfer(n * RATE + i + over))

const burst = (minute: number, over = 0) =>
  Array.from({ length: BURST_S }, (_, i) => second(minute * BURST_S + i, over))

/** What the values of another branch begin from. */
const OTHER = 1_000_000

/** What stands at a receiver that applies what it is told in order; a fault if it is told to let go of what it does not hold. */
const apply = (words: ReadonlyArray<string>) => {
  const standing = new Set<string>()
  const unknown: Array<string> = []
  for (const word of words) {
    const value = word.slice(1)
    if (word.startsWith("+")) standing.add(value)
    else if (!standing.delete(value)) unknown.push(word)
  }
  return { standing, unknown }
}

describe("a sink with a durable buffer that is down for an hour, at 100 matches a second", () => {
  it.effect(
    "is noticed by nobody else, and then gets everything in order, with retractions where they belong",
    () =>
      Effect.gen(function* () {
        const feed = new ScriptedFeed()
        let up = true
        const a = receiver("a", {
          buffer: "DURABLE",
          retry: { maxAttempts: 8, initialBackoffMs: 200, maxBackoffMs: 30_000 },
          before: () => (up ? Effect.void : Effect.fail(new Transient({ reason: "down" }))),
        })
        const b = receiver("b")
        const runtime = yield* startRuntime({
          plugins: [scriptedSource(feed)],
          resources: { ...definitions([a.sink, b.sink]), monitors: [allTransfers(["a", "b"])] },
        })
        const until = (what: string, sink: Receiver, count: number) =>
          waitFor(`${what}: ${count}`, () => sink.told.length >= count)
        const each = BURST_S * RATE
        feed.append(...burst(0))
        yield* until("both hear of the first minute", a, each)
        yield* until("both hear of the first minute", b, each)
        up = false
        feed.append(...burst(1))
        yield* until("the other hears of the second minute", b, 2 * each)
        // Half of what both heard of is taken back, and what only the other heard of.
        feed.fork(BURST_S / 2, "b", ...burst(0, OTHER).slice(BURST_S / 2), ...burst(1, OTHER))
        yield* until("the other hears of the fork", b, 5 * each)
        for (let minute = 2; minute < MINUTES; minute++) {
          yield* TestClock.adjust("1 minute")
          feed.append(...burst(minute))
          yield* until("the other goes on", b, (minute + 4) * each)
        }
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(a.told.length, each)
        assert.isAbove(a.attempts.length, each + MINUTES)
        const { checkpoint, error } = yield* networkNow(runtime, "test")
        assert.deepStrictEqual([checkpoint?.cursor.primary, error], [MINUTES * BURST_S, null])
        assert.deepStrictEqual(yield* lettersOf(runtime), [])

        up = true
        yield* TestClock.adjust("1 minute")
        for (let minute = 2; minute <= MINUTES; minute++) yield* until("it is told", a, minute * each)
        yield* waitFor("everything is told", () => a.told.at(-1)?.body === b.told.at(-1)?.body)
        const { standing, unknown } = apply(a.words())
        assert.deepStrictEqual([...standing], [...apply(b.words()).standing])
        assert.strictEqual(standing.size, MINUTES * each)
        // What was offered before the fork may have been heard of, and is taken back as well: no more than one commit's.
        assert.isAtMost(unknown.length, 64)
        const words = a.words()
        const retractions = words.filter((word) => word.startsWith("-"))
        assert.includeMembers(
          retractions,
          [...new Set(b.words().filter((word) => word.startsWith("-")))].slice(0, each / 2),
        )
        const first = words.indexOf(retractions[0]!)
        assert.deepStrictEqual(words.slice(first, first + retractions.length), retractions)
        assert.strictEqual(words[first + retractions.length], `+${OTHER + each / 2}`)
      }),
    isSoak ? 3_600_000 : 60_000,
  )
})
