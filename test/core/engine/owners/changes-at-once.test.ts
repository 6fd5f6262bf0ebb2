import { assert, describe, it } from "@effect/vitest"
import { Effect, type Exit, Fiber } from "effect"
import { networkNow, resourcesOf } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, Gate } from "../faults/support.ts"
import { type Process, Sent, startProcess, waitForState } from "./support.ts"

const ROUNDS = 4

const both = Effect.gen(function* () {
  const path = yield* databaseFile
  const feed = new ScriptedFeed()
  feed.append([])
  const sent = new Sent()
  const changing = new Gate("open")
  const start = (name: string) =>
    startProcess(
      path,
      { plugins: [scriptedSource(feed)], resources: definitions([sent.sink(name), sent.sink(name, { id: "spare" })]) },
      ({ change }) => ({ change: (changes) => Effect.andThen(changing.pass, change(changes)) }),
    )
  const owner = yield* start("owner")
  yield* waitForState(owner.runtime, "RUNNING")
  const other = yield* start("other")
  yield* waitForState(other.runtime, "STANDBY")
  return { owner, other, changing }
})

/** Waits until both processes show what is stored; answers it. */
const agreed = Effect.fnUntraced(function* (...processes: ReadonlyArray<Process>) {
  const shownBy = Effect.fnUntraced(function* ({ runtime }: Process) {
    const { networks, monitors, sinks } = resourcesOf(runtime)
    const revisions = (views: ReadonlyArray<{ readonly id: string; readonly revision: string }>) =>
      views.map(({ id, revision }) => `${id} ${revision}`).toSorted()
    return JSON.stringify([revisions(yield* networks), revisions(yield* monitors), revisions(yield* sinks)])
  })
  yield* waitUntil(
    "the processes show the same",
    Effect.map(Effect.orDie(Effect.forEach(processes, shownBy)), (shown) => new Set(shown).size === 1),
  )
  return yield* processes[0]!.storage.resources
})

const succeeded = (exits: ReadonlyArray<Exit.Exit<unknown, unknown>>) =>
  exits.filter(({ _tag }) => _tag === "Success").length

describe.concurrent("changes of two processes at once", () => {
  it.live("are never lost", () =>
    Effect.gen(function* () {
      const { owner, other } = yield* both
      const puts = Array.from({ length: 2 * ROUNDS }, (_, i) =>
        [owner, other][i % 2]!.resources.putMonitor(allTransfers([], { id: `m${i}` })),
      )
      yield* Effect.all(puts, { concurrency: "unbounded" })
      const { monitors } = yield* agreed(owner, other)
      assert.strictEqual(monitors.length, puts.length + 1)
    }),
  )

  it.live("that rest on the same revision of one resource: one is made, the other is a conflict", () =>
    Effect.gen(function* () {
      const { owner, other } = yield* both
      let { revision } = yield* owner.resources.putMonitor(allTransfers([], { id: "m" }))
      yield* agreed(owner, other)
      for (let round = 0; round < ROUNDS; round++) {
        const edit = ({ resources }: Process, sinks: ReadonlyArray<string>) =>
          Effect.result(
            resources.putMonitor(
              { ...allTransfers(sinks, { id: "m" }), predicate: `args.value > ${round}` },
              { ifRevision: revision },
            ),
          )
        const results = yield* Effect.all([edit(owner, ["mine"]), edit(other, ["spare"])], { concurrency: "unbounded" })
        const made = results.flatMap((result) => (result._tag === "Success" ? [result.success] : []))
        const refused = results.flatMap((result) => (result._tag === "Failure" ? [result.failure._tag] : []))
        assert.deepStrictEqual([made.length, refused], [1, ["Conflict"]])
        revision = made[0]!.revision
        const { monitors } = yield* agreed(owner, other)
        assert.strictEqual(monitors.find(({ definition }) => definition.id === "m")!.revision, revision)
      }
    }),
  )

  it.live("one that deletes a sink and one that puts a monitor which names it: exactly one is made", () =>
    Effect.gen(function* () {
      const { owner, other } = yield* both
      for (let round = 0; round < ROUNDS; round++) {
        const [deleter, putter] = round % 2 === 0 ? [owner, other] : [other, owner]
        const exits = yield* Effect.all(
          [
            Effect.exit(deleter.resources.deleteSink("spare")),
            Effect.exit(putter.resources.putMonitor(allTransfers(["spare"], { id: "naming" }))),
          ],
          { concurrency: "unbounded" },
        )
        assert.strictEqual(succeeded(exits), 1, `round ${round}`)
        const { monitors, sinks } = yield* agreed(owner, other)
        const known = sinks.map(({ definition }) => definition.id)
        for (const { definition } of monitors) assert.includeMembers(known, [...definition.sinks])
        if (exits[0]._tag === "Success") {
          yield* owner.resources.putSink({ id: "spare", module: "host:spare", config: {} })
        } else yield* owner.resources.deleteMonitor("naming")
        yield* agreed(owner, other)
      }
    }),
  )

  it.live("one that deletes a network and one that puts a monitor on it: exactly one is made", () =>
    Effect.gen(function* () {
      const { owner, other } = yield* both
      const network = { id: "brief", module: "scripted", config: {} }
      for (let round = 0; round < ROUNDS; round++) {
        yield* owner.resources.putNetwork(network)
        yield* waitForState(other.runtime, "STANDBY", "brief")
        yield* agreed(owner, other)
        const exits = yield* Effect.all(
          [
            Effect.exit(owner.resources.deleteNetwork("brief")),
            Effect.exit(other.resources.putMonitor(allTransfers([], { id: "naming", network: "brief" }))),
          ],
          { concurrency: "unbounded" },
        )
        assert.strictEqual(succeeded(exits), 1, `round ${round}`)
        const { monitors, networks } = yield* agreed(owner, other)
        const known = networks.map(({ definition }) => definition.id)
        for (const { definition } of monitors) assert.include(known, definition.network)
        if (exits[0]._tag === "Success") continue
        yield* owner.resources.deleteMonitor("naming")
        // The other one may have taken it over while the first deletion was refused.
        yield* owner.resources
          .deleteNetwork("brief")
          .pipe(Effect.catchTag("NotOwner", () => other.resources.deleteNetwork("brief")))
        yield* agreed(owner, other)
      }
    }),
  )

  it.live("one that is put on a network while its owner is about to remove it keeps the network, which runs on", () =>
    Effect.gen(function* () {
      const { owner, other, changing } = yield* both
      yield* owner.resources.deleteMonitor("all")
      yield* agreed(owner, other)
      yield* changing.close
      const deleting = yield* Effect.forkChild(Effect.flip(owner.resources.deleteNetwork("test")))
      yield* changing.reached
      yield* other.storage.change({
        putMonitors: [
          {
            definition: { ...allTransfers([]), predicate: null, gate: null, enabled: true },
            revision: "1",
            matchRevision: "1",
            effectiveFrom: null,
          },
        ],
      })
      yield* changing.open
      const { _tag } = yield* Fiber.join(deleting)
      assert.strictEqual(_tag, "Conflict")
      assert.strictEqual((yield* agreed(owner, other)).networks.length, 1)
      const states = Effect.forEach([owner, other], ({ runtime }) => networkNow(runtime, "test"))
      yield* waitUntil(
        "one of them runs it",
        Effect.map(states, (networks) => networks.some(({ state }) => state === "RUNNING")),
      )
    }),
  )

  it.live("one of which deletes a network: nothing of it runs any more, though it was tried twice", () =>
    Effect.gen(function* () {
      const { owner, other, changing } = yield* both
      yield* other.close
      yield* owner.resources.deleteMonitor("all")
      yield* changing.close
      const deleting = yield* Effect.forkChild(owner.resources.deleteNetwork("test"))
      yield* changing.reached
      yield* owner.storage.change({ seeds: [] })
      yield* changing.open
      yield* Fiber.join(deleting)
      yield* Effect.sleep("300 millis")
      assert.isNull(yield* owner.storage.pipeline("test"))
      assert.deepStrictEqual(yield* owner.storage.feedStates("test"), [])
    }),
  )
})
