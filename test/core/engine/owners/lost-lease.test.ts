import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, vi } from "vitest"
import type { Storage } from "../../../../core/index.ts"
import { networkNow, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, Gate, transfer, waitForInFlight, waitForNetwork } from "../faults/support.ts"
import { Sent, startProcess, waitForState } from "./support.ts"

/** In ms; the sinks' attempts are short. */
const LEASE = 15_000

afterEach(() => void vi.restoreAllMocks())

/** Lets the wall clock go on. */
const pass = (ms: number) => {
  const now = Date.now
  vi.spyOn(Date, "now").mockImplementation(() => now() + ms)
}

const setUp = Effect.gen(function* () {
  const path = yield* databaseFile
  const feed = new ScriptedFeed()
  feed.append([transfer(1)])
  const sent = new Sent()
  const start = (
    name: string,
    before: Effect.Effect<void> = Effect.void,
    alter?: (storage: Storage["Service"]) => Partial<Storage["Service"]>,
  ) =>
    startProcess(
      path,
      { plugins: [scriptedSource(feed)], resources: definitions([sent.sink(name, { before, timeoutMs: 1_000 })]) },
      alter,
    )
  const renewing = new Gate("closed")
  /** Its renewals get no answer while the gate is closed. */
  const unanswered = ({ renew }: Storage["Service"]): Partial<Storage["Service"]> => ({
    renew: (owner, ms) => Effect.andThen(renewing.pass, renew(owner, ms)),
  })
  const senders = () => sent.deliveries.map(({ by }) => by)
  return { feed, sent, start, renewing, unanswered, senders }
})

describe("an owner whose lease ran out", () => {
  it.live("sends nothing until it is renewed", () =>
    Effect.gen(function* () {
      const { feed, sent, start, renewing, unanswered } = yield* setUp
      const { runtime, storage } = yield* start("only", Effect.void, unanswered)
      yield* waitForCheckpoint(runtime, "test", 1)
      pass(LEASE)
      feed.append([transfer(2), transfer(3)])
      yield* waitForInFlight(runtime)
      yield* renewing.reached
      yield* Effect.sleep("200 millis")
      assert.deepStrictEqual(sent.values, [1])
      assert.strictEqual((yield* storage.debts({ sink: "mine" })).owed, 2)
      yield* renewing.open
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.deepStrictEqual(sent.values, [1, 2, 3])
    }),
  )

  it.live("and that was overtaken stands by, and has sent nothing since", () =>
    Effect.gen(function* () {
      const { feed, sent, start, renewing, unanswered, senders } = yield* setUp
      const first = yield* start("first", Effect.void, unanswered)
      yield* waitForCheckpoint(first.runtime, "test", 1)
      const second = yield* start("second")
      yield* waitForState(second.runtime, "STANDBY")
      pass(LEASE)
      feed.append([transfer(2)], [transfer(3)])
      yield* waitForCheckpoint(second.runtime, "test", 3)
      assert.strictEqual((yield* networkNow(second.runtime, "test")).state, "RUNNING")
      yield* renewing.open
      yield* waitForState(first.runtime, "STANDBY")
      feed.append([transfer(4)])
      yield* waitForCheckpoint(second.runtime, "test", 4)
      assert.deepStrictEqual(sent.values, [1, 2, 3, 4])
      assert.deepStrictEqual(senders(), ["first", "second", "second", "second"])
    }),
  )

  it.live("lets an attempt that had begun be, and hears no outcome of it", () =>
    Effect.gen(function* () {
      const { feed, sent, start, renewing, unanswered, senders } = yield* setUp
      const away = new Gate("open")
      const first = yield* start("first", away.pass, unanswered)
      yield* waitForCheckpoint(first.runtime, "test", 1)
      const second = yield* start("second")
      yield* waitForState(second.runtime, "STANDBY")
      yield* away.close
      feed.append([transfer(2), transfer(3)])
      yield* away.reached
      pass(LEASE)
      yield* waitForState(second.runtime, "RUNNING")
      yield* waitForCheckpoint(second.runtime, "test", 2)
      yield* away.open
      yield* renewing.open
      yield* waitForState(first.runtime, "STANDBY")
      assert.deepStrictEqual(sent.values, [1, 2, 3])
      assert.deepStrictEqual(sent.changed, [])
      // The first attempt is made by both; the second row's by the new owner alone.
      assert.isAtMost(senders().filter((by) => by === "first").length, 2)
      assert.isTrue(senders().slice(1).includes("second"))
    }),
  )
})

describe("an owner that another took for gone", () => {
  it.live("ends with its next write, and stands by", () =>
    Effect.gen(function* () {
      const { feed, sent, start, senders } = yield* setUp
      const first = yield* start("first", Effect.sleep("50 millis"))
      yield* waitForCheckpoint(first.runtime, "test", 1)
      feed.append(Array.from({ length: 40 }, (_, i) => transfer(2 + i)))
      yield* waitUntil("deliveries are under way", () => sent.deliveries.length >= 3)
      const second = yield* start("second", Effect.void, ({ claim }) => ({
        claim: (network, lease) => claim(network, { ...lease, isGone: () => true }),
      }))
      yield* waitForCheckpoint(second.runtime, "test", 2)
      yield* waitForNetwork(first.runtime, "the first stands by", ({ state }) => state === "STANDBY")
      assert.deepStrictEqual(
        sent.values.toSorted((a, b) => a - b),
        Array.from({ length: 41 }, (_, i) => 1 + i),
      )
      assert.deepStrictEqual(sent.changed, [])
      // The attempt under way, and at most the next one.
      const late = senders().slice(senders().indexOf("second"))
      assert.isAtMost(late.filter((by) => by === "first").length, 2)
    }),
  )
})
