import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schedule, Scope } from "effect"
import { createPublicClient, decodeEventLog, http } from "viem"
import { startAnvil } from "../../../server/devnet/anvil.ts"
import { startDevnet } from "../../../server/devnet/devnet.ts"
import { TOKEN_ABI, TOKEN_ADDRESS } from "../../../server/devnet/token.ts"
import { LARGE } from "../../../server/devnet/traffic.ts"

const isAlive = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z"
  } catch {
    return false
  }
}

const gone = (pid: number) =>
  Effect.suspend(() => (isAlive(pid) ? Effect.fail(new Error(`${pid} is alive`)) : Effect.void)).pipe(
    Effect.retry(Schedule.spaced("20 millis")),
    Effect.timeout("10 seconds"),
  )

const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0] ?? ""

/** Holds a port of 127.0.0.1 until the scope ends; a port that somebody holds already is as good. */
const hold = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer()
      server.once("error", () => resume(Effect.succeed(server)))
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close()),
  )

const askOverWebSocket = (url: string, method: string) =>
  Effect.callback<Record<string, unknown>>((resume) => {
    const socket = new WebSocket(url)
    socket.addEventListener("open", () => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] })))
    socket.addEventListener("message", ({ data }) => {
      socket.close()
      resume(Effect.succeed(JSON.parse(String(data))))
    })
  })

const tokenLogs = (url: string) =>
  Effect.promise(() =>
    createPublicClient({ transport: http(url) }).getLogs({ address: TOKEN_ADDRESS, fromBlock: 0n, toBlock: "latest" }),
  ).pipe(
    Effect.map((logs) =>
      logs.map((log) => {
        const { eventName, args } = decodeEventLog({ abi: TOKEN_ABI, data: log.data, topics: log.topics })
        const named = args as unknown as { readonly from?: string; readonly to?: string; readonly value: bigint }
        return { eventName, blockNumber: log.blockNumber, ...named }
      }),
    ),
  )

describe("a devnet", () => {
  it.live("has its token at the fixed address, keeps it moving in every way, and ends with its scope", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const devnet = yield* Scope.provide(startDevnet, scope)
      assert.strictEqual(devnet.chainId, 31_337)
      assert.strictEqual(devnet.token, "0x5FbDB2315678afecb367f032d93F642f64180aa3")
      assert.match(commandOf(devnet.pid), /anvil-\w+-\w+\/bin\/anvil$/)

      const client = createPublicClient({ transport: http(devnet.url) })
      assert.strictEqual(yield* Effect.promise(() => client.getChainId()), 31_337)
      assert.deepInclude(yield* askOverWebSocket(devnet.wsUrl, "eth_chainId"), { result: "0x7a69" })

      yield* tokenLogs(devnet.url).pipe(
        Effect.filterOrFail((logs) => {
          const transfers = logs.filter(({ eventName, blockNumber }) => eventName === "Transfer" && blockNumber > 1n)
          return (
            transfers.some(({ from, to, value }) => from !== to && value >= LARGE) &&
            transfers.some(({ from, to, value }) => from !== to && value < LARGE) &&
            transfers.some(({ from, to }) => from === to) &&
            logs.some(({ eventName }) => eventName === "Approval") &&
            new Set(logs.map(({ blockNumber }) => blockNumber)).size >= 3
          )
        }),
        Effect.retry(Schedule.spaced("200 millis")),
        Effect.timeout("20 seconds"),
      )

      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isAlive(devnet.pid))
    }),
  )

  it.live("takes a free port when 8545 is taken", () =>
    Effect.gen(function* () {
      yield* hold(8545)
      const devnet = yield* startDevnet
      assert.notStrictEqual(new URL(devnet.url).port, "8545")
      assert.strictEqual(new URL(devnet.wsUrl).port, new URL(devnet.url).port)
      const logs = yield* tokenLogs(devnet.url)
      assert.isAtLeast(logs.length, 5)
    }),
  )
})

describe("anvil", () => {
  it.live("ends when the process that started it is killed", () =>
    Effect.gen(function* () {
      const module = fileURLToPath(new URL("../../../server/devnet/anvil.ts", import.meta.url))
      const script = `
        import { Effect } from "effect"
        import { startAnvil } from ${JSON.stringify(module)}
        await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
          const { pid } = yield* startAnvil({ port: 0, args: [] })
          console.log("pid", pid)
          yield* Effect.never
        })))`
      const host = spawn(process.execPath, ["--input-type=module", "-e", script], {
        stdio: ["ignore", "pipe", "inherit"],
      })
      const pid = yield* Effect.callback<number>((resume) => {
        let output = ""
        host.stdout.on("data", (chunk: Buffer) => {
          output += chunk.toString()
          const found = /pid (\d+)\n/.exec(output)?.[1]
          if (found !== undefined) resume(Effect.succeed(Number(found)))
        })
      })
      assert.isTrue(isAlive(pid))
      host.kill("SIGKILL")
      yield* gone(pid)
    }),
  )

  it.live("that refuses its arguments fails with what it said", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(startAnvil({ port: 0, args: ["--no-such-argument"] }))
      assert.match(error.message, /^devnet: anvil ended \(2\): error: unexpected argument '--no-such-argument'/)
    }),
  )
})
