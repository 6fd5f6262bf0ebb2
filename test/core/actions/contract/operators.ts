import { assert } from "@effect/vitest"
import { Context, Effect, Fiber, Metric, Stream } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import { makeHolder } from "../../../../core/storage/holder.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { start } from "../program.ts"
import { AT_ONCE, Deposited, Noted, type Test } from "./support.ts"

/** The part of the contract about what operators see and do. */
export const operators = (test: Test): void => {
  test("operators see deliveries by state, action and store, in pages, and how many there are", (world) =>
    Effect.gen(function* () {
      let broken = true
      const flaky = Action.make({
        name: "flaky",
        on: Deposited,
        retry: { ...AT_ONCE, maxAttempts: 1 },
        run: ({ event }) => (broken && event.payload.amount > 2n ? Effect.fail(new Error("down")) : Effect.void),
      })
      const fine = Action.make({ name: "fine", on: Deposited, run: () => Effect.void })
      const { actions, until } = yield* start(world, [flaky, fine])
      const seen = yield* Effect.forkChild(
        actions.changes.pipe(
          Stream.filter(({ action }) => action === "flaky"),
          Stream.map(({ state, code }) => (code === null ? state : `${state}: ${code}`)),
          Stream.takeUntil((change) => change === "failed: attempts_exhausted"),
          Stream.runCollect,
        ),
        { startImmediately: true },
      )
      for (const amount of [1n, 2n, 3n]) yield* actions.emit(Deposited, { id: "a", amount })
      const failed = yield* until("failed", "flaky")
      yield* until("succeeded", "fine", 3)
      yield* until("succeeded", "flaky", 2)
      assert.include(yield* Fiber.join(seen), "running")
      const counts = yield* actions.counts
      assert.deepStrictEqual(
        counts.map(({ action, state, deliveries }) => `${action} ${state} ${deliveries}`),
        ["fine succeeded 3", "flaky failed 1", "flaky succeeded 2"],
      )
      const store = counts[0]!.store
      assert.strictEqual(store, world.name)
      const ids: Array<string> = []
      let after: string | null = null
      do {
        const page: Effect.Success<ReturnType<typeof actions.list>> = yield* actions.list({ limit: 2, after })
        ids.push(...page.deliveries.map(({ id }) => id))
        after = page.next
      } while (after !== null)
      assert.lengthOf(new Set(ids), 6)
      assert.include((yield* Effect.flip(actions.list({ store: "nowhere" }))).message, '"nowhere" does not exist')
      assert.lengthOf((yield* actions.list({ store, action: "flaky", state: "failed" })).deliveries, 1)

      broken = false
      assert.deepInclude(yield* actions.retry(failed.id), { state: "waiting", code: null, attempts: 0 })
      yield* until("succeeded", "flaky", 3)
      assert.include((yield* Effect.flip(actions.retry(failed.id))).message, "it is succeeded")
      assert.include((yield* Effect.flip(actions.cancel(failed.id))).message, "it is succeeded")
      assert.include((yield* Effect.flip(actions.get(`${store}:99`))).message, "there is no delivery")
      assert.include((yield* Effect.flip(actions.get("x"))).message, "there is no delivery x")
    }))

  test("a delivery that is cancelled is not run, until it is retried", (world) =>
    Effect.gen(function* () {
      let runs = 0
      const action = Action.make({ name: "acts", on: Noted, run: () => Effect.sync(() => void runs++) })
      const { actions, until, sql } = yield* start(world, [action])
      yield* actions.emit(Deposited, { id: "nobody hears it", amount: 1n })
      yield* sql(`insert into blockwatcher_events (id, type, version, payload, depth, created_at)
        values ('later', 'noted', 1, '{"text":"x"}', 0, ${Date.now()})`)
      yield* sql(`insert into blockwatcher_action_deliveries (event_seq, action, state, attempts, due, created_at)
        select seq, 'acts', 'waiting', 0, 9000000000000, 0 from blockwatcher_events where id = 'later'`)
      const { id } = yield* until("waiting", "acts")
      assert.deepInclude(yield* actions.cancel(id), { state: "cancelled", code: null })
      assert.strictEqual(runs, 0)
      yield* actions.retry(id)
      yield* until("succeeded", "acts")
      assert.strictEqual(runs, 1)
    }))

  test("what a process held that has ended is run by another at once", (world) =>
    Effect.gen(function* () {
      const action = Action.make({ name: "acts", on: Noted, run: () => Effect.void })
      const { actions, until, sql } = yield* start(world, [action])
      // No process has this number.
      const gone = makeHolder()
        .split(" ")
        .with(3, `${2 ** 22 + 1}`)
        .join(" ")
      yield* sql(`insert into blockwatcher_events (id, type, version, payload, depth, created_at)
        values ('held', 'noted', 1, '{"text":"x"}', 0, ${Date.now()})`)
      yield* sql(`insert into blockwatcher_action_deliveries
        (event_seq, action, state, attempts, due, created_at, holder, lease_until)
        select seq, 'acts', 'running', 0, 0, 0, '${gone}', 9000000000000 from blockwatcher_events where id = 'held'`)
      yield* until("succeeded", "acts")
      assert.lengthOf((yield* actions.list()).deliveries, 1)
    }))

  test("runs are counted by action and outcome and timed, and what waits is shown", (world) =>
    Effect.gen(function* () {
      let runs = 0
      const action = Action.make({
        name: "measured",
        on: Noted,
        retry: AT_ONCE,
        run: () => (runs++ === 0 ? Effect.fail(new Error("once")) : Effect.void),
      })
      const registry = new Map<string, Metric.Metric<unknown, unknown>>()
      const own = Context.make(Metric.MetricRegistry, registry as never)
      const { actions, until, sql } = yield* Effect.provideContext(start(world, [action]), own)
      yield* actions.emit(Noted, { text: "a" })
      yield* until("succeeded", "measured")
      const read = Effect.map(Effect.provideContext(Metric.snapshot, own), (all) =>
        all.map(({ id, attributes, state }) => ({ id, attributes: attributes ?? {}, state: state as any })),
      )
      const runsOf = (outcome: string) =>
        Effect.map(
          read,
          (all) =>
            all.find(
              ({ id, attributes }) =>
                id === "blockwatcher_action_runs_total" && (attributes as any).outcome === outcome,
            )?.state.count,
        )
      assert.deepStrictEqual([yield* runsOf("retried"), yield* runsOf("succeeded")], [1, 1])
      assert.strictEqual((yield* read).find(({ id }) => id === "blockwatcher_action_run_seconds")!.state.count, 2)
      yield* sql("update blockwatcher_action_deliveries set state = 'waiting', due = 9000000000000")
      yield* waitUntil(
        "one is shown to wait",
        Effect.map(read, (all) => all.find(({ id }) => id === "blockwatcher_action_waiting")?.state.value === 1),
      )
    }))
}
