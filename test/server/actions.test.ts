import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Metric, Redacted, Schema } from "effect"
import {
  Action,
  Actions,
  Blockwatcher,
  EventType,
  layerSqlite,
  Match,
  Provider,
  type RuntimeOptions,
} from "../../core/index.ts"
import { GraphqlServer } from "../../server/http.ts"
import { allTransfers, transfer } from "../core/engine/faults/support.ts"
import { COMPILE_CACHE, fromBundle } from "../support/bundle/bundled.ts"
import { graphql, subscribe } from "../support/graphql.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../support/scripted-source.ts"

const BIN = join(import.meta.dirname, "../../bin/blockwatcher.js")
const TOKEN = "token-of-the-test"
const ONCE = { maxAttempts: 1, initialBackoffMs: 1, maxBackoffMs: 1 }

const Deposited = EventType.make({
  name: "deposited",
  version: 1,
  schema: Schema.Struct({ id: Schema.String, amount: Schema.BigInt }),
})
/** As a later version of the program writes it. */
const DepositedLater = EventType.make({ ...Deposited, version: 2, schema: Schema.Struct({ id: Schema.String }) })
const Ordered = EventType.make({ name: "ordered", version: 1, schema: Schema.Struct({ secret: Schema.String }) })

/** A program that credits deposits, which may fail, and pays for orders, of which nobody knows whether it did. */
const program = () => {
  const state = { fails: true, sent: 0 }
  const credit = Action.make({
    name: "credit",
    on: Deposited,
    retry: ONCE,
    run: () => Effect.suspend(() => (state.fails ? Effect.fail(new Error("the books are closed")) : Effect.void)),
  })
  const pay = Provider.operation({
    name: "bank.pay",
    repeat: "never",
    input: Schema.String,
    output: Schema.Struct({ number: Schema.BigInt, at: Schema.String }),
    call: () => Effect.suspend(() => Effect.fail(new Error(`no answer to ${++state.sent}`))),
  })
  const pays = Action.make({
    name: "pays",
    on: Ordered,
    calls: { pay },
    retry: ONCE,
    run: ({ event, calls }) => calls.pay(event.payload.secret),
  })
  return { state, actions: [credit, pays] }
}

/** A real server over a real runtime whose program has actions. */
const serve = Effect.fnUntraced(function* (
  actions: ReadonlyArray<Action<any, never>> = [],
  options: Pick<RuntimeOptions<never>, "plugins" | "resources"> = {},
) {
  const storage = layerSqlite({ path: ":memory:" })
  const runtime = yield* Layer.build(Blockwatcher.layer({ storage, actions, ...options }))
  const server = GraphqlServer.layer({
    host: "127.0.0.1",
    port: 0,
    token: Redacted.make(TOKEN),
    closeTimeoutMs: 1_000,
  }).pipe(Layer.provide(Layer.succeedContext(runtime)))
  const { url } = yield* Effect.provide(Effect.service(GraphqlServer), yield* Layer.build(server))
  const headers = { authorization: `Bearer ${TOKEN}` }
  const ask = (query: string, variables: Record<string, unknown> = {}) =>
    Effect.promise(() => graphql(url, query, variables, headers))
  const service = Context.get(runtime, Actions)
  const until = (state: "failed" | "parked" | "succeeded" | "cancelled", action: string, count: number) =>
    waitUntil(
      `${count} deliveries to ${action} are ${state}`,
      Effect.map(service.count({ state, action }), (found) => found === count).pipe(Effect.orDie),
    )
  const page = (path: string) => Effect.promise(() => fetch(new URL(path, url), { headers }).then((r) => r.text()))
  return { url, headers, ask, until, page, ...service }
})

/** Two failed deliveries to `credit`, one that is not read, and one to `pays` of unknown outcome. */
const serveTroubles = Effect.gen(function* () {
  const { state, actions } = program()
  const served = yield* serve(actions)
  yield* served.emit(Deposited, { id: "a", amount: 2n ** 80n }, { tenant: "acme" })
  yield* served.emit(Deposited, { id: "b", amount: 1n })
  yield* served.until("failed", "credit", 2)
  yield* served.emit(DepositedLater, { id: "c" })
  yield* served.until("parked", "credit", 1)
  yield* served.emit(Ordered, { secret: "secret of the order" })
  yield* served.until("parked", "pays", 1)
  return { state, ...served }
})

const errorOf = ({ errors }: Awaited<ReturnType<typeof graphql>>) => errors[0]?.extensions
const codeOf = (result: Awaited<ReturnType<typeof graphql>>) => errorOf(result)?.code

const ALL_FIELDS = `id store action state attempts due code reason retryable resolvable cancellable createdAt settledAt
  event { id type version tenant network matchId life kind createdAt } calls { place operation key state sentAt }`

const LIST = `query ($state: ActionDeliveryState, $action: ID, $store: ID, $first: Int, $after: String) {
  actionDeliveries(state: $state, action: $action, store: $store, first: $first, after: $after) {
    edges { cursor node { ${ALL_FIELDS} } } pageInfo { hasNextPage endCursor } totalCount } }`

describe("deliveries to actions", () => {
  it.live("are shown with their events, what can be done about them, and their calls", () =>
    Effect.gen(function* () {
      const { ask } = yield* serveTroubles
      const { data, errors } = yield* ask(LIST, { first: 1000 })
      assert.deepEqual(errors, [])
      const nodes: ReadonlyArray<any> = data.actionDeliveries.edges.map(({ node }: any) => node)
      const [a, , unread, unknown] = nodes
      assert.deepInclude(a, {
        id: "runtime:1",
        store: "runtime",
        action: "credit",
        state: "FAILED",
        attempts: 1,
        calls: [],
        code: "attempts_exhausted",
        reason: "the books are closed",
      })
      assert.deepEqual([a.retryable, a.resolvable, a.cancellable], [true, false, true])
      assert.deepInclude(a.event, {
        type: "deposited",
        version: 1,
        tenant: "acme",
        network: null,
        matchId: null,
        life: null,
        kind: null,
      })
      assert.isTrue(Date.parse(a.event.createdAt) <= Date.parse(a.settledAt))
      assert.deepInclude(unread, {
        state: "PARKED",
        code: "payload_unreadable",
        settledAt: null,
        reason: "it is of version 2; this program's type is of version 1",
      })
      assert.deepInclude(unknown, { state: "PARKED", code: "outcome_unknown" })
      assert.deepEqual([unknown.retryable, unknown.resolvable, unknown.cancellable], [false, true, true])
      assert.match(unknown.reason, /^call bank\.pay was sent, and it is not known what came of it/)
      assert.deepInclude(unknown.calls[0], { place: 0, operation: "bank.pay", state: "INTENT" })
      assert.match(unknown.calls[0].key, /^[0-9a-f]{64}$/)
      assert.notInclude(JSON.stringify(data), "secret of the order")

      const one = `query ($id: ID!) { actionDelivery(id: $id) { ${ALL_FIELDS} } }`
      assert.deepEqual((yield* ask(one, { id: unknown.id })).data.actionDelivery, unknown)
      assert.isNull((yield* ask(one, { id: "runtime:99" })).data.actionDelivery)
      assert.isNull((yield* ask(one, { id: "what" })).data.actionDelivery)
    }),
  )

  it.live("are paged, the oldest first, and filtered by state, action and store, with the count of all", () =>
    Effect.gen(function* () {
      const { ask } = yield* serveTroubles
      const first = (yield* ask(LIST, { first: 3 })).data.actionDeliveries
      const second = (yield* ask(LIST, { first: 3, after: first.pageInfo.endCursor })).data.actionDeliveries
      const cursors = [...first.edges, ...second.edges].map(({ cursor }: any) => cursor)
      assert.deepEqual(cursors, ["runtime:1", "runtime:2", "runtime:3", "runtime:4"])
      assert.deepEqual([first.totalCount, first.pageInfo.hasNextPage, second.pageInfo.hasNextPage], [4, true, false])
      const shown = (variables: Record<string, unknown>) =>
        Effect.map(ask(LIST, variables), ({ data }) => [
          data.actionDeliveries.totalCount,
          ...data.actionDeliveries.edges.map(({ node }: any) => node.id),
        ])
      assert.deepEqual(yield* shown({ state: "FAILED" }), [2, "runtime:1", "runtime:2"])
      assert.deepEqual(yield* shown({ state: "PARKED", action: "credit" }), [1, "runtime:3"])
      assert.deepEqual(yield* shown({ action: "pays", store: "runtime" }), [1, "runtime:4"])
      assert.deepEqual(yield* shown({ state: "RUNNING" }), [0])
      const refused = [{ first: 0 }, { first: 1001 }, { after: "what" }, { action: "none" }, { store: "none" }]
      assert.deepEqual(yield* Effect.forEach(refused, (variables) => Effect.map(ask(LIST, variables), codeOf)), [
        "INVALID",
        "INVALID",
        "INVALID_POSITION",
        "NOT_FOUND",
        "NOT_FOUND",
      ])
    }),
  )

  it.live("tell of a monitor's matches and their retractions", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const hears = Action.make({ name: "hears", on: Match.of("all", Schema.Unknown), run: () => Effect.void })
      const { ask, until } = yield* serve([hears], {
        plugins: [scriptedSource(feed)],
        resources: {
          networks: [{ id: "test", module: "scripted", config: {} }],
          monitors: [allTransfers(["actions"])],
        },
      })
      yield* until("succeeded", "hears", 2)
      feed.fork(1, "x", [])
      yield* until("succeeded", "hears", 3)
      feed.fork(1, "", [transfer(2)], [])
      yield* until("succeeded", "hears", 4)
      const { data } = yield* ask(LIST)
      const [, second, ended, again] = data.actionDeliveries.edges.map(({ node }: any) => node.event)
      const { matchId } = second
      const common = { type: "match:all", version: 1, tenant: null, network: "test", matchId }
      for (const [event, own] of [
        [second, { id: matchId, life: 1, kind: "MATCH" }],
        [ended, { id: `${matchId}-r`, life: 1, kind: "RETRACTED" }],
        [again, { id: `${matchId}-2`, life: 2, kind: "MATCH" }],
      ]) {
        assert.deepInclude(event, { ...common, ...own })
      }
      const { actions } = (yield* ask(`{ actions { subscriptions { type monitor } } }`)).data
      assert.deepEqual(actions[0].subscriptions, [{ type: "match:all", monitor: "all" }])
    }),
  )

  it.live("of a program without actions are an empty list, and there are no actions", () =>
    Effect.gen(function* () {
      const { ask } = yield* serve()
      const { data, errors } = yield* ask(
        `{ actions { name } actionDeliveries { edges { node { id } } totalCount pageInfo { hasNextPage endCursor } } }`,
      )
      assert.deepEqual(errors, [])
      assert.deepEqual(data, {
        actions: [],
        actionDeliveries: { edges: [], totalCount: 0, pageInfo: { hasNextPage: false, endCursor: null } },
      })
      assert.deepEqual(
        (yield* ask(`mutation { retryActionDeliveries { changed skipped endCursor } }`)).data.retryActionDeliveries,
        { changed: 0, skipped: 0, endCursor: null },
      )
    }),
  )

  it.live("are retried, cancelled and resolved; what stands in the way is said by its code, with all problems", () =>
    Effect.gen(function* () {
      const { ask, until, state } = yield* serveTroubles
      const retry = `mutation ($id: ID!) { retryActionDelivery(id: $id) { state attempts code reason } }`
      const resolve = `mutation ($id: ID!, $done: Boolean!, $result: JSON) {
        resolveActionDelivery(id: $id, done: $done, result: $result) { id state } }`
      const cancel = `mutation ($id: ID!) { cancelActionDelivery(id: $id) { state settledAt } }`
      const codes = [
        yield* ask(retry, { id: "runtime:99" }),
        yield* ask(retry, { id: "runtime:4" }),
        yield* ask(resolve, { id: "runtime:1", done: false }),
        yield* ask(resolve, { id: "runtime:4", done: false, result: {} }),
      ].map(codeOf)
      assert.deepEqual(codes, ["NOT_FOUND", "CONFLICT", "CONFLICT", "INVALID"])
      const wrong = yield* ask(resolve, { id: "runtime:4", done: true, result: { number: 7 } })
      assert.deepEqual(
        [codeOf(wrong), errorOf(wrong)?.problems?.map(({ path, message }) => `${path} ${message}`)],
        ["INVALID", ["number must be a string representing a bigint", "at is missing"]],
      )
      const missing = yield* ask(resolve, { id: "runtime:4", done: true })
      assert.strictEqual(codeOf(missing), "INVALID")

      state.fails = false
      assert.deepEqual((yield* ask(retry, { id: "runtime:1" })).data.retryActionDelivery, {
        state: "WAITING",
        attempts: 0,
        code: null,
        reason: null,
      })
      yield* until("succeeded", "credit", 1)
      assert.deepEqual([yield* ask(retry, { id: "runtime:1" }), yield* ask(cancel, { id: "runtime:1" })].map(codeOf), [
        "CONFLICT",
        "CONFLICT",
      ])
      const cancelled = (yield* ask(cancel, { id: "runtime:2" })).data.cancelActionDelivery
      assert.strictEqual(cancelled.state, "CANCELLED")
      assert.isNotNull(cancelled.settledAt)

      // As not done, the call is sent again, and again nobody knows; as done, the run gets the result.
      assert.deepEqual((yield* ask(resolve, { id: "runtime:4", done: false })).errors, [])
      yield* waitUntil("it is sent again", () => state.sent === 2)
      yield* until("parked", "pays", 1)
      const answer = { number: `${2n ** 90n}`, at: "noon" }
      assert.deepEqual((yield* ask(resolve, { id: "runtime:4", done: true, result: answer })).errors, [])
      yield* until("succeeded", "pays", 1)
      assert.strictEqual(state.sent, 2)
    }),
  )

  it.live("are retried and cancelled by a filter, as many as asked for", () =>
    Effect.gen(function* () {
      const { ask, until, state } = yield* serveTroubles
      const retryAll = `mutation ($state: ActionDeliveryState, $action: ID, $first: Int, $after: String) {
        retryActionDeliveries(state: $state, action: $action, first: $first, after: $after) { changed skipped endCursor } }`
      const cancelAll = `mutation ($state: ActionDeliveryState!, $action: ID!) {
        cancelActionDeliveries(state: $state, action: $action) { changed skipped endCursor } }`
      const wrong = yield* ask(retryAll, { state: "RUNNING", first: 0 })
      assert.deepEqual(
        [codeOf(wrong), errorOf(wrong)?.problems],
        [
          "INVALID",
          [
            { path: "first", message: "is 0; one call changes 1 to 10000 deliveries" },
            { path: "state", message: "is RUNNING; only these can be retried: FAILED, PARKED, CANCELLED, WAITING" },
          ],
        ],
      )
      assert.strictEqual(codeOf(yield* ask(cancelAll, { state: "CANCELLED", action: "credit" })), "INVALID")
      assert.strictEqual(codeOf(yield* ask(cancelAll, { state: "FAILED", action: "none" })), "NOT_FOUND")
      const parked = (yield* ask(cancelAll, { state: "PARKED", action: "credit" })).data.cancelActionDeliveries
      assert.deepEqual(parked, { changed: 1, skipped: 0, endCursor: null })
      state.fails = false
      const first = (yield* ask(retryAll, { first: 1 })).data.retryActionDeliveries
      assert.deepEqual(first, { changed: 1, skipped: 0, endCursor: "runtime:1" })
      const rest = (yield* ask(retryAll, { after: first.endCursor })).data.retryActionDeliveries
      assert.deepEqual(rest, { changed: 1, skipped: 1, endCursor: null })
      yield* until("succeeded", "credit", 2)
      const again = (yield* ask(retryAll, { state: "CANCELLED", action: "credit" })).data.retryActionDeliveries
      assert.deepEqual(again, { changed: 1, skipped: 0, endCursor: null })
      yield* until("parked", "credit", 1)
    }),
  )
})

describe("actions", () => {
  it.live("are shown with what they get, how many deliveries they have, and how long the oldest waits", () =>
    Effect.gen(function* () {
      const { ask } = yield* serveTroubles
      const { data } = yield* ask(
        `{ actions { name declared subscriptions { type version monitor } counts { store state deliveries } oldestWaitingSeconds } }`,
      )
      assert.deepEqual(data.actions, [
        {
          name: "credit",
          declared: true,
          oldestWaitingSeconds: null,
          subscriptions: [{ type: "deposited", version: 1, monitor: null }],
          counts: [
            { store: "runtime", state: "FAILED", deliveries: 2 },
            { store: "runtime", state: "PARKED", deliveries: 1 },
          ],
        },
        {
          name: "pays",
          declared: true,
          oldestWaitingSeconds: null,
          subscriptions: [{ type: "ordered", version: 1, monitor: null }],
          counts: [{ store: "runtime", state: "PARKED", deliveries: 1 }],
        },
      ])
    }),
  )

  it.live("that have failed or parked deliveries say so in health and metrics, and stay ready", () =>
    Effect.gen(function* () {
      const { page, url } = yield* serveTroubles
      const health = JSON.parse(yield* page("/healthz"))
      assert.deepInclude(health, {
        status: "ok",
        eventStore: null,
        actions: [
          { action: "credit", waiting: 0, oldestSeconds: null, failed: 2, parked: 1 },
          { action: "pays", waiting: 0, oldestSeconds: null, failed: 0, parked: 1 },
        ],
      })
      assert.strictEqual((yield* Effect.promise(() => fetch(new URL("/readyz", url)))).status, 200)
      const lines = (yield* page("/metrics")).split("\n")
      assert.includeMembers(lines, [
        `blockwatcher_action_deliveries{store="runtime",action="credit",state="failed"} 2`,
        `blockwatcher_action_deliveries{store="runtime",action="credit",state="parked"} 1`,
        `blockwatcher_action_deliveries{store="runtime",action="pays",state="parked"} 1`,
        `blockwatcher_action_runs_total{action="credit",outcome="failed"} 2`,
        `blockwatcher_action_runs_total{action="pays",outcome="parked"} 1`,
        `blockwatcher_action_run_seconds_count{action="pays"} 1`,
        `blockwatcher_action_waiting 0`,
      ])
      assert.isTrue(lines.some((line) => line.startsWith("blockwatcher_action_oldest_waiting_seconds ")))
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
  )
})

const CHANGES = `subscription ($state: ActionDeliveryState, $action: ID) {
  actionDeliveryChanges(state: $state, action: $action) { id store action event state code delivery { reason } } }`

describe("changes of deliveries", () => {
  it.live("are told as they come, over WebSocket and as an event stream", () =>
    Effect.gen(function* () {
      const { url, headers, emit, state } = yield* serveTroubles
      state.fails = false
      const live = subscribe(url, CHANGES, { action: "credit", state: "SUCCEEDED" }, { connectionParams: headers })
      yield* Effect.addFinalizer(() => Effect.promise(() => live.close()))
      const response = yield* Effect.promise((signal) =>
        fetch(url, {
          method: "POST",
          headers: { ...headers, "content-type": "application/json", accept: "text/event-stream" },
          body: JSON.stringify({ query: CHANGES, variables: { action: "credit", state: "SUCCEEDED" } }),
          signal,
        }),
      )
      const stream = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      yield* Effect.addFinalizer(() => Effect.promise(() => stream.cancel()))
      const first = live.next()
      let heard = ""
      const read = Effect.promise(async () => {
        while (!heard.includes("event: next")) heard += (await stream.read()).value ?? ""
      })
      // A subscription tells what comes once it has begun; when that is, nobody is told.
      const emitting = yield* Effect.forkChild(
        Effect.forever(Effect.andThen(emit(Deposited, { id: "x", amount: 1n }), Effect.sleep("20 millis"))),
      )
      const { actionDeliveryChanges } = yield* Effect.promise(() => first)
      yield* read
      yield* Fiber.interrupt(emitting)
      assert.deepInclude(actionDeliveryChanges, {
        store: "runtime",
        action: "credit",
        state: "SUCCEEDED",
        code: null,
        delivery: { reason: null },
      })
      assert.match(heard, /"actionDeliveryChanges":\{"id":"runtime:\d+","store":"runtime","action":"credit"/)
    }),
  )
})

/** Runs `blockwatcher actions` to its end. */
const cli = (args: ReadonlyArray<string>, url: string) =>
  Effect.promise(async () => {
    const child = spawn(process.execPath, [...fromBundle(), BIN, "actions", ...args, "--url", url], {
      env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, BLOCKWATCHER_API_TOKEN: TOKEN },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const output = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk) => (output.stdout += chunk))
    child.stderr.on("data", (chunk) => (output.stderr += chunk))
    const [code] = (await once(child, "close")) as [number]
    return { code, ...output }
  })

describe("blockwatcher actions", () => {
  it.live("lists deliveries as a table or as JSON, page by page", () =>
    Effect.gen(function* () {
      const { url } = yield* serveTroubles
      const [table, json, slip] = yield* Effect.all(
        [
          cli(["list", "--first", "1"], url),
          cli(["list", "--state", "parked", "--action", "pays", "--json"], url),
          cli(["list", "--action", "none"], url),
        ],
        { concurrency: "unbounded" },
      )
      assert.deepEqual([table.code, table.stderr], [0, ""])
      const lines = table.stdout.trimEnd().split("\n")
      assert.match(lines[0]!, /^ID +CAME +ACTION +STATE +EVENT +MATCH +ATTEMPTS +CODE +REASON$/)
      assert.match(
        lines[1]!,
        /^runtime:1 +20\S+Z +credit +FAILED +deposited +- +1 +attempts_exhausted +the books are closed$/,
      )
      assert.strictEqual(lines[3], "1 of 4 deliveries; go on with --after runtime:1")
      const page = JSON.parse(json.stdout)
      assert.deepEqual([page.totalCount, page.deliveries[0].calls[0].operation], [1, "bank.pay"])
      assert.deepEqual([slip.code, slip.stdout], [1, ""])
      assert.match(slip.stderr, /action "none" does not exist; there are "credit", "pays" \(NOT_FOUND\)/)
    }),
  )

  it.live("retries, resolves and cancels those that are named, or all of some", () =>
    Effect.gen(function* () {
      const { url, state, until } = yield* serveTroubles
      const run = (...args: ReadonlyArray<string>) => cli(args, url)
      state.fails = false
      const [named, wrong, cancelled] = yield* Effect.all(
        [
          run("retry", "runtime:1", "runtime:4", "nothing"),
          run("resolve", "runtime:4", "--done", "--result", `{"number":7}`),
          run("cancel", "--action", "credit", "--state", "parked", "--json"),
        ],
        { concurrency: "unbounded" },
      )
      assert.strictEqual(named.code, 1)
      const said = named.stdout.trimEnd().split("\n")
      assert.strictEqual(said[0], "runtime:1: waits for a run")
      assert.match(
        said[1]!,
        /^runtime:4: delivery runtime:4: call bank\.pay was sent.* resolve it, or cancel it \(CONFLICT\)$/,
      )
      assert.match(said[2]!, /^nothing: there is no delivery nothing .*\(NOT_FOUND\)$/)
      assert.strictEqual(named.stderr, "blockwatcher: it failed for 2 of 3 deliveries\n")
      assert.strictEqual(wrong.code, 1)
      assert.match(
        wrong.stdout,
        /output schema of bank\.pay: number: must be a string representing a bigint; at: is missing \(INVALID\)$/m,
      )
      assert.deepEqual(JSON.parse(cancelled.stdout), { changed: 1, skipped: 0, endCursor: null })
      yield* until("succeeded", "credit", 1)
      const [all, resolved, one] = yield* Effect.all(
        [
          run("retry", "--state", "failed"),
          run("resolve", "runtime:4", "--done", "--result", `{"number":"7","at":"noon"}`),
          run("cancel", "runtime:3"),
        ],
        { concurrency: "unbounded" },
      )
      assert.deepEqual([all.code, all.stdout], [0, "1 wait for a run, 0 left as they were\n"])
      assert.deepEqual([resolved.code, resolved.stdout], [0, "runtime:4: is resolved, and goes on\n"])
      assert.deepEqual([one.code, one.stderr], [1, "blockwatcher: it failed for 1 of 1 deliveries\n"])
      yield* until("succeeded", "credit", 2)
      yield* until("succeeded", "pays", 1)
    }),
  )

  it.live("says what is wrong with a call, and what to do", () =>
    Effect.gen(function* () {
      const { url } = yield* serve()
      const refusals: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["retry"], /name the deliveries by their ids, or all of some by --state/],
        [["retry", "runtime:1", "--state", "failed", "--action", "x"], /--state and --action go without ids/],
        [["cancel", "--action", "x"], /name the deliveries by their ids, or all of some by --action and --state/],
        [["resolve", "runtime:1"], /say what came of the call: --done \(with its --result\) or --no-done/],
        [["resolve", "runtime:1", "--no-done", "--result", "1"], /--result goes with --done/],
        [["resolve", "runtime:1", "--done", "--result", "{"], /--result is not JSON; quote it/],
      ]
      yield* Effect.forEach(
        refusals,
        Effect.fnUntraced(function* ([args, expected]) {
          const { code, stdout, stderr } = yield* cli(args, url)
          assert.deepEqual([code, stdout], [1, ""], args.join(" "))
          assert.match(stderr, expected)
        }),
        { concurrency: "unbounded" },
      )
    }),
  )
})
