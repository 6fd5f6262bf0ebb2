import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { launchServe, startServe, temporaryFolder, waitFor, writeFiles } from "../support/process.ts"
import { networkNow, waitForCheckpoint } from "./network.ts"
import { CHAIN_ID, startTokenChain, transferSelector } from "./token-chain.ts"

const TIMEOUT_MS = 300_000

const STACK = /\n\s+at .*:\d+:\d+/

/** Everything that a database holds. */
const rowsOf = (path: string): unknown => {
  const native = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = native.prepare("select name from sqlite_master where type = 'table' order by name").all()
    return tables.map(({ name }) => [name, native.prepare(`select * from "${String(name)}"`).all()])
  } finally {
    native.close()
  }
}

/** Starts a server that must not start, and answers what it said; its database must be as before. */
const refusedStart = Effect.fnUntraced(function* (database: string, variables: Readonly<Record<string, string>>) {
  const before = rowsOf(database)
  const server = yield* launchServe({ DATABASE_URL: `sqlite:${database}`, ...variables })
  assert.strictEqual(yield* server.ended, 1, server.output.stdout)
  const { stdout, stderr } = server.output
  assert.notMatch(stdout + stderr, STACK)
  assert.notInclude(stdout, "is up")
  assert.match(stderr, /^blockwatcher: /)
  assert.strictEqual(stderr.match(/blockwatcher: /g)?.length, 1, stderr)
  assert.deepStrictEqual(rowsOf(database), before)
  return stderr
})

const network = (id: string, url: string, chainId = CHAIN_ID) => ({
  id,
  module: "evm-rpc",
  config: { chain_id: chainId, urls: [url], confirmations: 0, start: "earliest", poll_interval_ms: 50 },
})

const monitor = (id: string, networkId: string) => ({ id, network: networkId, selector: transferSelector, sinks: [] })

/** A database that a server left behind in good order. */
const usedDatabase = Effect.fnUntraced(function* (folder: string) {
  const database = `${folder}/rows.db`
  yield* writeFiles(folder, {
    "good/networks/net.json": network("net", "http://127.0.0.1:9"),
    "good/monitors/all.json": monitor("all", "net"),
  })
  const server = yield* startServe({ DATABASE_URL: `sqlite:${database}`, SEEDS_DIR: `${folder}/good` })
  assert.strictEqual(yield* server.stop, 0)
  return database
})

describe.concurrent("a server that cannot start", () => {
  it.live(
    "says all that is wrong, once, and leaves the database as it was",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const database = yield* usedDatabase(folder)
        yield* writeFiles(folder, {
          "unreadable/networks/a.json": "{ no",
          "unreadable/sinks/folder.json/x": "",
          "twice/networks/a.json": network("net", "http://127.0.0.1:9"),
          "twice/networks/b.json": network("net", "http://127.0.0.1:10"),
          "wrong/networks/a.json": { id: "a", module: "evm-rpc", config: { chain_id: 0, confirmation: 3 } },
          "wrong/sinks/s.json": {
            id: "s",
            module: "webhook",
            config: { url: "https://example.com/hook", timeout_ms: -5 },
            retry: { max_attempts: 0 },
          },
          "wrong/monitors/m.json": {
            ...monitor("m", "a"),
            sinks: ["s", "none"],
            predicate: "args.value >",
          },
        })

        const environment = yield* refusedStart(database, {
          PORT: "many",
          API_TOKEN: "hunter 2",
          JOURNAL_DEPTH: "-1",
          SEEDS_DIR: `${folder}/nowhere`,
        })
        for (const name of ["PORT", "API_TOKEN", "JOURNAL_DEPTH", "SEEDS_DIR"]) {
          assert.match(environment, new RegExp(`BLOCKWATCHER_${name} is .*: expected`))
        }
        assert.notInclude(environment, "hunter")

        const unreadable = yield* refusedStart(database, { SEEDS_DIR: `${folder}/unreadable` })
        assert.match(unreadable, /sinks\/folder\.json: cannot be read/)

        const twice = yield* refusedStart(database, { SEEDS_DIR: `${folder}/twice` })
        assert.match(twice, /networks\/a\.json.*networks\/b\.json/)
        assert.match(twice, /networks\/b\.json.*networks\/a\.json/)

        const wrong = yield* refusedStart(database, { SEEDS_DIR: `${folder}/wrong` })
        for (const place of [
          "networks/a.json.config.chain_id",
          "networks/a.json.config.confirmation",
          "sinks/s.json.retry.max_attempts",
          "sinks/s.json.config.timeout_ms",
          "monitors/m.json.sinks.1",
          "monitors/m.json.predicate",
        ]) {
          assert.include(wrong, `  ${place}: `)
        }

        const other = createServer().listen(0, "127.0.0.1")
        yield* Effect.promise(() => once(other, "listening"))
        const { port } = other.address() as AddressInfo
        const taken = yield* refusedStart(database, { PORT: `${port}` })
        assert.match(taken, new RegExp(`cannot listen on 127.0.0.1:${port}: the port is in use.*BLOCKWATCHER_PORT`))
        other.close()

        const native = new DatabaseSync(database)
        native.exec(`insert into mikro_orm_migrations (name, executed_at) values ('9999-later', current_timestamp)`)
        native.close()
        const newer = yield* refusedStart(database, {})
        assert.match(newer, /newer version.*9999-later.*Start the newer version/)
      }),
    TIMEOUT_MS,
  )
})

describe.concurrent("a network whose node is of another chain", () => {
  it.live(
    "is FAILED and says so, and the others run",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const chain = yield* startTokenChain
        yield* writeFiles(folder, {
          "networks/good.json": network("good", chain.url),
          "networks/other.json": network("other", chain.url, 1),
          "monitors/good.json": monitor("good", "good"),
          "monitors/other.json": monitor("other", "other"),
        })
        const server = yield* startServe({ DATABASE_URL: "memory:", SEEDS_DIR: folder })
        const failed = yield* waitFor(
          "the network is FAILED",
          networkNow(server.url, "other"),
          ({ state }) => state === "FAILED",
        )
        assert.match(failed.error ?? "", /31337/)
        assert.match(failed.error ?? "", /\b1\b/)
        assert.isNull(failed.checkpoint)
        yield* waitForCheckpoint(server.url, "good", yield* chain.head)
        yield* chain.mine([1])
        const good = yield* waitForCheckpoint(server.url, "good", yield* chain.head)
        assert.strictEqual(good.state, "RUNNING")
        assert.strictEqual(yield* server.stop, 0)
      }),
    TIMEOUT_MS,
  )
})
