import { chmod, readFile } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { graphqlData } from "../support/graphql.ts"
import { startServe, temporaryFolder, waitFor, writeFiles } from "../support/process.ts"
import { type Received, respond, startReceiver } from "../support/receiver.ts"
import { waitForCheckpoint } from "./network.ts"
import { CHAIN_ID, startTokenChain, transferSelector } from "./token-chain.ts"

const TIMEOUT_MS = 300_000

/** Writes what it gets, with the id of the delivery, into a file of its own folder. */
const SCRIPT = `#!/bin/sh
read -r line
printf '%s %s\\n' "$BLOCKWATCHER_DELIVERY_ID" "$line" >> "$(dirname "$0")/$1"
`

const REFUSES = `#!/bin/sh
echo "never wanted" >&2
exit 65
`

const TEMPLATE = `{"text": "{{ event.args.value }} in block {{ event.block.number }} of {{ network }}", "id": {{ id | tojson }}}`

interface Letter {
  readonly sink: string
  readonly matchId: string
  readonly attempts: number
  readonly reason: string
  readonly replayable: boolean
  readonly payload: object
}

const LETTERS = `{ deadLetters(network: "net") { totalCount edges { node {
  sink matchId attempts reason replayable payload } } } }`

const script = (id: string, path: string, args: ReadonlyArray<string>) => ({
  id,
  module: "script",
  config: { path, args },
})

describe("sinks of a server", () => {
  it.live(
    "run scripts, render templates, and make dead letters of what is refused for good",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const chain = yield* startTokenChain
        const receiver = yield* startReceiver()
        const statuses: Readonly<Record<string, number>> = { "/gone": 410, "/missing": 404 }
        receiver.always(({ path }) => respond(statuses[path] ?? 200))
        const webhook = (id: string, config: object = {}) => ({
          id,
          module: "webhook",
          config: { url: `${receiver.origin}/${id}`, ...config },
        })
        yield* writeFiles(folder, {
          "scripts/append.sh": SCRIPT,
          "scripts/refuse.sh": REFUSES,
          "seeds/networks/net.json": {
            id: "net",
            module: "evm-rpc",
            config: {
              chain_id: CHAIN_ID,
              urls: [chain.url],
              confirmations: 0,
              start: (yield* chain.head) + 1,
              poll_interval_ms: 50,
            },
          },
          "seeds/monitors/all.json": {
            id: "all",
            network: "net",
            selector: transferSelector,
            sinks: ["script", "refusing", "template", "gone", "missing"],
          },
          "seeds/sinks/script.json": script("script", "append.sh", ["heard.txt"]),
          "seeds/sinks/refusing.json": script("refusing", "refuse.sh", []),
          "seeds/sinks/template.json": webhook("template", { body_template: TEMPLATE, headers: { "x-kind": "text" } }),
          "seeds/sinks/gone.json": webhook("gone"),
          "seeds/sinks/missing.json": webhook("missing"),
        })
        for (const file of ["append.sh", "refuse.sh"]) {
          yield* Effect.promise(() => chmod(`${folder}/scripts/${file}`, 0o755))
        }
        const server = yield* startServe({
          DATABASE_URL: `sqlite:${folder}/rows.db`,
          SEEDS_DIR: `${folder}/seeds`,
          SCRIPTS_DIR: `${folder}/scripts`,
        })
        const values = [7, 11, 13]
        yield* chain.mine(values)
        const head = yield* chain.head
        yield* waitForCheckpoint(server.url, "net", head)
        const transfers = (yield* chain.transfers(head)).map(({ value }) => String(value))
        assert.sameMembers(transfers, values.map(String))

        const heard = yield* Effect.promise(() => readFile(`${folder}/scripts/heard.txt`, "utf8"))
        const runs = heard
          .trimEnd()
          .split("\n")
          .map((line) => ({ delivery: line.split(" ", 1)[0], event: JSON.parse(line.slice(line.indexOf(" "))) }))
        assert.deepStrictEqual(
          runs.map(({ event }) => event.event.args.value),
          transfers,
        )
        for (const { delivery, event } of runs) assert.strictEqual(delivery, event.id)
        const ids = runs.map(({ event }) => event.id as string)

        const at = (sink: string): ReadonlyArray<Received> =>
          receiver.requests.filter(({ path }) => path === `/${sink}`)
        assert.deepStrictEqual(
          at("template").map(({ body }) => JSON.parse(body.toString())),
          transfers.map((value, i) => ({ text: `${value} in block ${head} of net`, id: ids[i] })),
        )
        for (const { headers } of at("template")) assert.strictEqual(headers["x-kind"], "text")
        assert.lengthOf(at("missing"), 3)
        // A receiver that says that it is gone is left alone.
        assert.lengthOf(at("gone"), 1)

        const page = yield* waitFor(
          "the dead letters",
          Effect.promise(() => graphqlData(server.url, LETTERS)),
          ({ deadLetters }) => deadLetters.totalCount === 9,
        )
        const letters: ReadonlyArray<Letter> = page.deadLetters.edges.map(({ node }: { node: Letter }) => node)
        for (const [sink, reason, attempts] of [
          ["gone", /^permanent: .*410/, [1, 0, 0]],
          ["missing", /^permanent: .*404/, [1, 1, 1]],
          ["refusing", /^permanent: .*exit code 65: never wanted/, [1, 1, 1]],
        ] as const) {
          const own = letters.filter((letter) => letter.sink === sink)
          assert.deepStrictEqual(
            own.map(({ matchId }) => matchId),
            ids,
          )
          for (const letter of own) {
            assert.match(letter.reason, reason)
            // Not before somebody lets the sink go on.
            assert.strictEqual(letter.replayable, sink !== "gone")
          }
          assert.deepStrictEqual(
            own.map((letter) => letter.attempts),
            [...attempts],
          )
        }
        assert.deepStrictEqual(
          letters.filter(({ sink }) => sink === "missing").map(({ payload }) => payload),
          at("missing").map(({ body }) => JSON.parse(body.toString())),
        )
        assert.strictEqual(yield* server.stop, 0)
      }),
    TIMEOUT_MS,
  )
})
