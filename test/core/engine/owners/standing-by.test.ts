import { hostname } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Stream } from "effect"
import { Feed, type FeedItem, Permanent } from "../../../../core/index.ts"
import { networkNow, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, fast, Gate, transfer } from "../faults/support.ts"
import { Sent, startProcess, waitForState } from "./support.ts"

/** The second in which another process's changes are taken up, and some more. */
const TAKEN_UP_MS = 5_000

/** A process that runs the network `test`, and one that stands by. Values of 100 and more are refused by the sink. */
const both = Effect.gen(function* () {
  const path = yield* databaseFile
  const feed = new ScriptedFeed()
  feed.append([transfer(1)], [transfer(2)])
  const sent = new Sent()
  const start = (name: string) => {
    const other = { ...sent.sink(name, { id: "other" }), retry: fast, deliver: () => new Permanent({ reason: "no" }) }
    return startProcess(path, {
      plugins: [scriptedSource(feed)],
      resources: definitions([sent.sink(name), other]),
      settings: { drainTimeoutMs: 1_000 },
    })
  }
  const owner = yield* start("owner")
  yield* waitForCheckpoint(owner.runtime, "test", 2)
  const other = yield* start("other")
  yield* waitForState(other.runtime, "STANDBY")
  return { feed, sent, owner, other }
})

const scriptedNetwork = (id: string) => ({ id, module: "scripted", config: {} })

const inTime = (what: string, condition: Effect.Effect<boolean, unknown>) =>
  Effect.suspend(() => {
    const since = performance.now()
    return Effect.map(waitUntil(what, Effect.orDie(condition)), () => {
      assert.isBelow(performance.now() - since, TAKEN_UP_MS, what)
    })
  })

describe("a process that stands by", () => {
  it.live("answers NotOwner to what needs the owner, and changes nothing", () =>
    Effect.gen(function* () {
      const { feed, owner, other } = yield* both
      yield* owner.resources.putMonitor(allTransfers(["other"], { id: "refused" }))
      feed.append([transfer(3)])
      yield* waitForCheckpoint(owner.runtime, "test", 3)
      yield* inTime(
        "the monitor is known",
        Effect.map(other.resources.monitors, (monitors) => monitors.length === 2),
      )
      yield* owner.resources.putMonitor(allTransfers([], { id: "refused" }))
      yield* inTime(
        "the sink is let go",
        Effect.map(other.resources.monitors, (monitors) => monitors[1]!.sinks.length === 0),
      )
      const before = JSON.stringify(yield* owner.storage.resources)
      const { pauseNetwork, resumeNetwork, rewindNetwork, deleteNetwork, deleteMonitor, deleteSink } = other.resources
      const refused: Record<string, Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>> = {
        pause: pauseNetwork("test"),
        resume: resumeNetwork("test"),
        rewind: rewindNetwork("test", { primary: 1, secondary: 0 }),
        monitor: deleteMonitor("refused", { discard: true }),
        sink: deleteSink("other", { discard: true }),
      }
      for (const [what, mutation] of Object.entries(refused)) {
        const { _tag, message } = yield* Effect.flip(mutation)
        assert.strictEqual(_tag, "NotOwner", what)
        assert.include(message, `run by process ${process.pid} on ${hostname()}, not by this one`, what)
      }
      // Once no monitor names it, nothing but its owner stands in the way.
      yield* owner.resources.deleteMonitor("refused", { discard: true })
      yield* owner.resources.deleteMonitor("all")
      yield* inTime(
        "no monitor is left",
        Effect.map(other.resources.monitors, (monitors) => monitors.length === 0),
      )
      assert.strictEqual((yield* Effect.flip(deleteNetwork("test", { discard: true })))._tag, "NotOwner")
      assert.strictEqual(JSON.parse(before).networks.length, (yield* owner.storage.resources).networks.length)
      assert.strictEqual((yield* networkNow(owner.runtime, "test")).state, "RUNNING")
    }),
  )

  it.live("stores changes of resources, which the owner takes up", () =>
    Effect.gen(function* () {
      const { feed, sent, owner, other } = yield* both
      yield* other.resources.putMonitor({ ...allTransfers(["mine"], { id: "odd" }), predicate: "args.value % 2 == 1" })
      yield* inTime(
        "the owner has the monitor",
        Effect.map(owner.resources.monitors, (monitors) => monitors.some(({ id }) => id === "odd")),
      )
      feed.append([transfer(11)], [transfer(12)])
      yield* waitForCheckpoint(owner.runtime, "test", 4)
      assert.deepStrictEqual(sent.values.slice(2), [11, 11, 12])
      yield* other.resources.deleteMonitor("all")
      const edited = yield* other.resources.putNetwork({ id: "test", module: "scripted", config: { range: 1 } })
      const sink = yield* other.resources.putSink({
        id: "mine",
        module: "host:mine",
        config: {},
        retry: { maxAttempts: 7, initialBackoffMs: 1, maxBackoffMs: 2 },
      })
      yield* inTime(
        "the owner has all",
        Effect.gen(function* () {
          const { revision } = yield* networkNow(owner.runtime, "test")
          const [mine] = yield* owner.resources.sinks
          const monitors = yield* owner.resources.monitors
          return revision === edited.revision && mine!.revision === sink.revision && monitors.length === 1
        }),
      )
      feed.append([transfer(13)], [transfer(14)])
      yield* waitForCheckpoint(owner.runtime, "test", 6)
      assert.deepStrictEqual(sent.values.slice(5), [13])
      assert.isTrue(sent.deliveries.every(({ by }) => by === "owner"))
    }),
  )

  it.live("runs a network that it was given itself, and so does the owner of others", () =>
    Effect.gen(function* () {
      const { sent, owner, other } = yield* both
      yield* other.resources.putNetwork(scriptedNetwork("new"))
      yield* other.resources.putMonitor(allTransfers(["mine"], { id: "new", network: "new" }))
      yield* waitForCheckpoint(other.runtime, "new", 2)
      yield* waitForState(owner.runtime, "STANDBY", "new")
      assert.deepStrictEqual(
        sent.deliveries.map(({ by }) => by),
        ["owner", "owner", "other", "other"],
      )
      yield* other.resources.deleteMonitor("new")
      yield* other.resources.deleteNetwork("new")
      yield* inTime(
        "it is gone everywhere",
        Effect.map(owner.resources.networks, (networks) => networks.length === 1),
      )
    }),
  )

  it.live("shows what the owner does: checkpoint, matches, retractions, to those who follow it too", () =>
    Effect.gen(function* () {
      const { feed, owner, other } = yield* both
      const { open, matches } = Context.get(other.runtime, Feed)
      const seen: Array<FeedItem> = []
      const stream = yield* open({ kinds: ["MatchEmitted", "MatchRetracted", "CheckpointAdvanced"], after: null })
      yield* Effect.forkScoped(Stream.runForEach(stream, (item) => Effect.sync(() => seen.push(item))))
      feed.append([transfer(3)])
      yield* waitForCheckpoint(owner.runtime, "test", 3)
      const held = Effect.map(matches({ network: "test", first: 10, after: null }), ({ items }) =>
        items.map(({ match }) => (match.event["args"] as { readonly value: string }).value),
      )
      yield* inTime(
        "the match is shown",
        Effect.map(held, (values) => values.join() === "1,2,3"),
      )
      feed.fork(2, "x", [transfer(4)], [])
      yield* waitForCheckpoint(owner.runtime, "test", 4)
      const tagged = (tag: FeedItem["_tag"]) => seen.filter(({ _tag }) => _tag === tag)
      yield* inTime(
        "the subscription shows all",
        Effect.sync(() => tagged("MatchEmitted").length === 2 && tagged("MatchRetracted").length === 1),
      )
      assert.deepStrictEqual(yield* held, ["1", "2", "4"])
      yield* waitForCheckpoint(other.runtime, "test", 4)
      yield* inTime(
        "the checkpoint is told",
        Effect.sync(() =>
          seen.some((item) => item._tag === "CheckpointAdvanced" && item.checkpoint.cursor.primary === 4),
        ),
      )
      assert.deepStrictEqual(
        seen.flatMap(({ _tag }) => (_tag === "CheckpointAdvanced" ? [] : [_tag])),
        ["MatchEmitted", "MatchRetracted", "MatchEmitted"],
      )
    }),
  )

  it.live("shows where a monitor took effect, which the owner found out later", () =>
    Effect.gen(function* () {
      const { feed, owner, other } = yield* both
      yield* other.resources.putMonitor(allTransfers([], { id: "more" }))
      yield* inTime(
        "the owner has it",
        Effect.map(owner.resources.monitors, (monitors) => monitors.length === 2),
      )
      feed.append([])
      yield* inTime(
        "it is shown",
        Effect.map(other.resources.monitors, (monitors) => monitors[1]!.effectiveFrom?.primary === 2),
      )
    }),
  )

  it.live("gives nothing up of what another runs while it does not know yet that it stands by", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      const sent = new Sent()
      const claiming = new Gate("closed")
      const options = (name: string) => ({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([sent.sink(name)]), networks: ["test", "bare"].map(scriptedNetwork) },
      })
      const owner = yield* startProcess(path, options("owner"))
      yield* waitForState(owner.runtime, "RUNNING")
      const other = yield* startProcess(path, options("other"), ({ claim }) => ({
        claim: (network, lease) => Effect.andThen(claiming.pass, claim(network, lease)),
      }))
      yield* claiming.reached
      const { deleteMonitor, deleteNetwork } = other.resources
      const deletions = yield* Effect.forkChild(
        Effect.forEach(
          [deleteMonitor("all", { discard: true }), deleteNetwork("bare")],
          (deletion) => Effect.map(Effect.flip(deletion), ({ _tag }) => _tag),
          { concurrency: "unbounded" },
        ),
        { startImmediately: true },
      )
      yield* claiming.open
      assert.deepStrictEqual(yield* Fiber.join(deletions), ["NotOwner", "NotOwner"])
      const { networks, monitors } = yield* owner.storage.resources
      assert.deepStrictEqual([networks.length, monitors.length], [2, 1])
    }),
  )
})

describe("an owner", () => {
  it.live("leaves no row behind for a sink that another process took out and deleted", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      const sent = new Sent()
      const reading = new Gate("open")
      const away = new Gate("closed")
      const options = (name: string) => ({
        plugins: [scriptedSource(feed)],
        resources: definitions([sent.sink(name, { before: away.pass }), sent.sink(name, { id: "kept" })]),
        settings: { drainTimeoutMs: 1_000 },
      })
      // What others changed comes to the owner late.
      const owner = yield* startProcess(path, options("owner"), ({ resourcesVersion }) => ({
        resourcesVersion: Effect.andThen(reading.pass, resourcesVersion),
      }))
      yield* waitForState(owner.runtime, "RUNNING")
      const other = yield* startProcess(path, options("other"))
      yield* waitForState(other.runtime, "STANDBY")
      yield* reading.close
      yield* reading.reached
      yield* other.resources.putMonitor(allTransfers(["kept"]))
      yield* other.resources.deleteSink("mine")
      feed.append([transfer(1)])
      yield* away.reached
      yield* reading.open
      yield* waitForCheckpoint(owner.runtime, "test", 1)
      feed.append([transfer(2)])
      yield* waitForCheckpoint(owner.runtime, "test", 2)
      assert.deepStrictEqual(yield* owner.storage.owedSinks("test"), [])
      assert.deepInclude(yield* networkNow(owner.runtime, "test"), { state: "RUNNING", error: null })
    }),
  )
})
