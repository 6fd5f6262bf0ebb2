import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted, Scope } from "effect"
import { Transient } from "../../core/index.ts"
import { GraphqlServer } from "../../server/http.ts"
import { held, refuser, startWithLetters, waitForLetters } from "../core/engine/replays/support.ts"
import { lettersOf, waitForWords } from "../core/engine/taking-back/support.ts"
import { COMPILE_CACHE, fromBundle } from "../support/bundle/bundled.ts"
import { graphql } from "../support/graphql.ts"
import { resourcesOf } from "../support/runtime.ts"
import { waitUntil } from "../support/scripted-source.ts"

const BIN = join(import.meta.dirname, "../../bin/blockwatcher.js")
const TOKEN = "token-of-the-test"

/** A real server over a network of which `count` deliveries to the sink `a` have died. */
const serve = Effect.fnUntraced(function* (count: number) {
  const a = refuser("a", { retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1 } })
  const started = yield* startWithLetters(count, [a])
  const server = GraphqlServer.layer({
    host: "127.0.0.1",
    port: 0,
    token: Redacted.make(TOKEN),
    closeTimeoutMs: 1_000,
  }).pipe(Layer.provide(Layer.succeedContext(started.runtime)))
  const scope = yield* Scope.fork(yield* Effect.scope)
  const built = yield* Layer.build(server).pipe(Scope.provide(scope))
  const { url, address } = yield* Effect.provide(Effect.service(GraphqlServer), built)
  const ask = (query: string, variables: Record<string, unknown> = {}) =>
    Effect.promise(() => graphql(url, query, variables, { authorization: `Bearer ${TOKEN}` }))
  return { ...started, a, url, port: address.port, ask, close: Scope.close(scope, Exit.void) }
})

/** Runs `blockwatcher dead-letters` to its end. */
const cli = (args: ReadonlyArray<string>, environment: Record<string, string>) =>
  Effect.promise(async () => {
    const child = spawn(process.execPath, [...fromBundle(), BIN, "dead-letters", ...args], {
      env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const output = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk) => (output.stdout += chunk))
    child.stderr.on("data", (chunk) => (output.stderr += chunk))
    const [code] = (await once(child, "close")) as [number]
    return { code, ...output }
  })

const codeOf = ({ errors }: { readonly errors: ReadonlyArray<{ readonly extensions?: { readonly code?: string } }> }) =>
  errors[0]?.extensions?.code

describe("mutations of dead letters", () => {
  it.live("replay, discard and offer what they are asked for", () =>
    Effect.gen(function* () {
      const { a, ask, feed, runtime, letters } = yield* serve(8)
      const replay = `mutation ($id: ID!) { replayDeadLetter(id: $id) { delivered deadLetter { id attempts reason } } }`
      a.answer(() => new Transient({ reason: "busy" }))
      const { id } = letters[0]!
      assert.deepEqual((yield* ask(replay, { id })).data, {
        replayDeadLetter: { delivered: false, deadLetter: { id, attempts: 3, reason: "transient: busy" } },
      })
      a.accept()
      assert.deepEqual((yield* ask(replay, { id })).data, { replayDeadLetter: { delivered: true, deadLetter: null } })
      assert.deepEqual(
        (yield* ask(
          `mutation { replayDeadLetters(network: "test", sink: "a", first: 2) { delivered failed skipped whySkipped } }`,
        )).data,
        { replayDeadLetters: { delivered: 2, failed: 0, skipped: 0, whySkipped: [] } },
      )
      assert.deepEqual(
        (yield* ask(`mutation ($id: ID!) { discardDeadLetter(id: $id) }`, { id: letters[3]!.id })).data,
        { discardDeadLetter: true },
      )
      a.answer(() => new Transient({ reason: "busy" }))
      feed.fork(6, "x", [], [])
      yield* waitForLetters(runtime, 6)
      a.accept()
      const before = a.words().length
      assert.deepEqual((yield* ask(`mutation { offerRetractions(network: "test", sink: "a") }`)).data, {
        offerRetractions: 2,
      })
      yield* waitUntil("they are told", () => a.words().length === before + 2)
      yield* waitForLetters(runtime, 4)
      assert.deepEqual(
        (yield* ask(`mutation { discardDeadLetters(network: "test", monitor: "all", kind: MATCH) }`)).data,
        {
          discardDeadLetters: 4,
        },
      )
      assert.deepEqual(yield* lettersOf(runtime), [])
    }),
  )

  it.live("answer with the code of what stands in their way", () =>
    Effect.gen(function* () {
      const { ask, feed, runtime, letters } = yield* serve(2)
      const replay = (id: string) =>
        Effect.map(ask(`mutation ($id: ID!) { replayDeadLetter(id: $id) { delivered } }`, { id }), codeOf)
      assert.strictEqual(yield* replay("x"), "NOT_FOUND")
      assert.strictEqual(codeOf(yield* ask(`mutation { discardDeadLetter(id: "x") }`)), "NOT_FOUND")
      assert.strictEqual(codeOf(yield* ask(`mutation { discardDeadLetters(network: "x") }`)), "NOT_FOUND")
      const many = `mutation { replayDeadLetters(network: "test", first: 10001) { delivered } }`
      assert.strictEqual(codeOf(yield* ask(many)), "INVALID")
      assert.strictEqual(codeOf(yield* ask(`mutation { offerRetractions(network: "test", sink: "x") }`)), "CONFLICT")
      feed.fork(1, "x", [])
      yield* waitForLetters(runtime, 3)
      for (const { id, whyNot } of yield* lettersOf(runtime)) {
        if (whyNot !== null) assert.strictEqual(yield* replay(id), whyNot)
      }
      yield* resourcesOf(runtime).pauseSink("a")
      assert.strictEqual(yield* replay(letters[0]!.id), "CONFLICT")
    }),
  )

  it.live("are of letters that show what was to be delivered, a retraction too", () =>
    Effect.gen(function* () {
      const { ask, feed, runtime } = yield* serve(2)
      feed.fork(1, "x", [])
      yield* waitForLetters(runtime, 3)
      const { data } = yield* ask(`{ deadLetters(network: "test") { edges { node { kind matchId payload } } } }`)
      const nodes: ReadonlyArray<Record<string, any>> = data.deadLetters.edges.map(({ node }: any) => node)
      assert.deepEqual(
        nodes.map(({ kind }) => kind),
        ["MATCH", "MATCH", "RETRACTED"],
      )
      const [, second, retraction] = nodes
      assert.deepInclude(second!["payload"], { type: "match", id: second!["matchId"], monitor: "all", network: "test" })
      assert.deepEqual(retraction!["payload"], { type: "retracted", match_id: second!["matchId"] })
    }),
  )

  it.live("go on when their client goes away", () =>
    Effect.gen(function* () {
      const { a, url, runtime } = yield* serve(3)
      const { wait, begun, letGo } = held()
      a.answer(() => wait)
      const client = new AbortController()
      const answer = fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}` },
        body: JSON.stringify({ query: `mutation { replayDeadLetters(network: "test") { delivered } }` }),
        signal: client.signal,
      })
      yield* begun
      client.abort()
      assert.isTrue(yield* Effect.promise(() => answer.then(() => false).catch(() => true)))
      yield* letGo
      yield* waitForWords(a, ["+1", "+2", "+3"])
      yield* waitForLetters(runtime, 0)
    }),
  )
})

describe("a bulk replay while its server is told to stop", () => {
  it.live("ends with the attempt that is under way, and its answer says what was left", () =>
    Effect.gen(function* () {
      const { a, ask, close, runtime, letters } = yield* serve(5)
      const { wait, begun, letGo } = held()
      a.answer(() => wait)
      const replay = yield* Effect.forkChild(
        ask(`mutation { replayDeadLetters(network: "test") { delivered failed skipped whySkipped } }`),
      )
      yield* begun
      const closing = yield* Effect.forkChild(close, { startImmediately: true })
      yield* letGo
      yield* Fiber.join(closing)
      assert.deepEqual((yield* Fiber.join(replay)).data, {
        replayDeadLetters: {
          delivered: 1,
          failed: 0,
          skipped: 4,
          whySkipped: [
            `network "test" stops; what was not sent is a dead letter as before: replay it again when it runs`,
          ],
        },
      })
      assert.deepEqual(yield* lettersOf(runtime), letters.slice(1))
    }),
  )
})

describe("blockwatcher dead-letters", () => {
  it.live("lists them as a table or as JSON, page by page", () =>
    Effect.gen(function* () {
      const { port, url, letters } = yield* serve(3)
      const variables = { BLOCKWATCHER_PORT: `${port}`, BLOCKWATCHER_API_TOKEN: TOKEN }
      const first = yield* cli(["list", "--network", "test", "--sink", "a", "--first", "2"], variables)
      assert.strictEqual(first.code, 0, first.stderr)
      const lines = first.stdout.trimEnd().split("\n")
      assert.match(lines[0]!, /^ID +DIED +SINK +MONITOR +KIND +AT +ATTEMPTS +REPLAY +REASON$/)
      assert.match(
        lines[1]!,
        new RegExp(`^${letters[0]!.id} +20\\S+Z +a +all +MATCH +1:1048576 +1 +yes +permanent: no$`),
      )
      assert.match(lines[4]!, /^2 of 3 dead letters; go on with --after \S+$/)
      const after = lines[4]!.split(" ").at(-1)!
      const second = yield* cli(["list", "--network", "test", "--after", after, "--json", "--url", url], variables)
      const page = JSON.parse(second.stdout)
      assert.deepEqual(
        [page.totalCount, page.hasNextPage, page.deadLetters.map(({ id }: { id: string }) => id)],
        [3, false, [letters[2]!.id]],
      )
      const none = yield* cli(["list", "--network", "test", "--kind", "retracted"], variables)
      assert.strictEqual(none.stdout, "0 of 0 dead letters\n")
      const slip = yield* cli(["list", "--network", "test", "--monitor", "none"], variables)
      assert.deepEqual([slip.code, slip.stdout], [1, ""])
      assert.match(slip.stderr, /monitor "none" of network "test" does not exist; there are "all" \(NOT_FOUND\)/)
    }),
  )

  it.live("replays and discards those that are named, or all of a network, and offers retractions", () =>
    Effect.gen(function* () {
      const { a, feed, runtime, url, letters } = yield* serve(8)
      const run = (...args: ReadonlyArray<string>) => cli([...args, "--url", url], { BLOCKWATCHER_API_TOKEN: TOKEN })
      a.answer(({ id }) => (id === letters[0]!.matchId ? new Transient({ reason: "busy" }) : Effect.void))
      const named = yield* run("replay", letters[0]!.id, "nothing", letters[1]!.id)
      assert.strictEqual(named.code, 1)
      assert.deepEqual(named.stdout.trimEnd().split("\n"), [
        `${letters[0]!.id}: kept after 3 attempts in all: transient: busy`,
        `nothing: dead letter "nothing" does not exist (NOT_FOUND)`,
        `${letters[1]!.id}: delivered`,
      ])
      assert.strictEqual(named.stderr, "blockwatcher: it failed for 2 of 3 letters\n")
      const discarded = yield* run("discard", letters[2]!.id, "--json")
      assert.deepEqual(JSON.parse(discarded.stdout), [{ id: letters[2]!.id, done: true, said: "discarded" }])
      feed.fork(7, "x", [], [])
      yield* waitForWords(a, ["+2", "-8"])
      const all = yield* run("replay", "--network", "test", "--first", "2")
      assert.strictEqual(all.code, 1)
      assert.match(all.stdout, /^1 delivered, 1 failed, 0 left as they were\ngo on behind these with --after \S+\n$/)
      assert.match(all.stderr, /^blockwatcher: 1 letters failed again; the list says why\n$/)
      const after = all.stdout.trimEnd().split(" ").at(-1)!
      const rest = yield* run("replay", "--network", "test", "--sink", "a", "--after", after)
      assert.strictEqual(rest.code, 0)
      assert.match(
        rest.stdout,
        /^3 delivered, 0 failed, 1 left as they were\nleft: a letter cannot be replayed: its match was taken back .*\n$/,
      )
      const offered = yield* run("offer-retractions", "--network", "test", "--sink", "a")
      assert.deepEqual([offered.code, offered.stdout], [0, "0 retractions are owed again\n"])
      const ended = yield* run("discard", "--network", "test", "--kind", "match", "--ended")
      assert.deepEqual([ended.code, ended.stdout], [0, "1 dead letters are discarded\n"])
      const gone = yield* run("discard", "--network", "test")
      assert.deepEqual([gone.code, gone.stdout], [0, "1 dead letters are discarded\n"])
      yield* waitForLetters(runtime, 0)
    }),
  )

  it.live("says why letters are left, and fails when none was delivered", () =>
    Effect.gen(function* () {
      const { a, feed, runtime, url } = yield* serve(3)
      const run = (...args: ReadonlyArray<string>) => cli([...args, "--url", url], { BLOCKWATCHER_API_TOKEN: TOKEN })
      yield* resourcesOf(runtime).pauseSink("a")
      const left = yield* run("replay", "--network", "test")
      assert.deepEqual(
        [left.code, left.stdout.split("\n")],
        [
          1,
          [
            "0 delivered, 0 failed, 3 left as they were",
            `left: sink "a" is paused (by an operator); let it go on with resumeSink, then repeat this`,
            "",
          ],
        ],
      )
      assert.strictEqual(left.stderr, "blockwatcher: nothing was delivered\n")
      yield* resourcesOf(runtime).resumeSink("a")
      a.answer(() => new Transient({ reason: "busy \u001b[31m" }))
      feed.fork(2, "x", [])
      yield* waitForLetters(runtime, 4)
      const { stdout } = yield* run("replay", (yield* lettersOf(runtime))[0]!.id)
      assert.match(stdout, /: kept after 3 attempts in all: transient: busy {2}\[31m\n$/)
      a.accept()
      const offered = yield* run("offer-retractions", "--network", "test", "--sink", "a")
      assert.deepEqual(
        [offered.code, offered.stdout],
        [
          0,
          "1 retractions are owed again; the sink is sent them in their turn, and what fails again is a dead letter again\n",
        ],
      )
      yield* waitForLetters(runtime, 3)
      const some = yield* run("replay", "--network", "test")
      assert.strictEqual(some.code, 0)
      assert.match(some.stdout, /^2 delivered, 0 failed, 1 left as they were\nleft: a letter cannot be replayed: /)
    }),
  )

  it.live("says what is wrong, and what to do, without a stack or the token", () =>
    Effect.gen(function* () {
      const { url } = yield* serve(1)
      const list = ["list", "--network", "test"]
      const refusals: ReadonlyArray<readonly [ReadonlyArray<string>, Record<string, string>, RegExp]> = [
        [[...list, "--url", url], {}, /the server wants a token: set BLOCKWATCHER_API_TOKEN/],
        [[...list, "--url", url], { BLOCKWATCHER_API_TOKEN: "other-token" }, /the server does not know this token/],
        [[...list, "--url", new URL("/healthz", url).href], {}, /not as a blockwatcher server does; the URL must be/],
        [
          [...list, "--url", "http://127.0.0.1:1/graphql"],
          {},
          /no answer from http:.* ECONNREFUSED.*`blockwatcher serve`/,
        ],
        [list, { BLOCKWATCHER_PORT: "0" }, /BLOCKWATCHER_PORT is 0.*--url/],
        [
          list,
          { BLOCKWATCHER_PORT: "many", BLOCKWATCHER_HOST: "?" },
          /BLOCKWATCHER_HOST is "\?".*\n.*BLOCKWATCHER_PORT is "many"/,
        ],
        [["replay"], {}, /name either the letters by their ids, or a network by --network/],
        [["discard", "x", "--network", "test"], {}, /name either the letters/],
        [["discard", "x", "--sink", "a"], {}, /--sink and --monitor go with --network/],
        [["discard", "x", "--ended"], {}, /--kind and --ended go with --network/],
      ]
      for (const [args, variables, expected] of refusals) {
        const { code, stdout, stderr } = yield* cli(args, variables)
        assert.strictEqual(code, 1, args.join(" "))
        assert.match(stderr, expected)
        assert.notMatch(stderr, /\n\s+at |other-token/)
        assert.strictEqual(stdout, "")
      }
    }),
  )
})
