import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, test } from "vitest"
import { COMPILE_CACHE, fromBundle } from "../support/bundle/bundled.ts"
import { graphqlData } from "../support/graphql.ts"
import { until } from "./serve-fake.ts"

const root = join(import.meta.dirname, "../..")
const BIN = join(root, "bin/blockwatcher.js")
const FAKE = join(root, "test/server/fake-main.ts")

interface Started {
  readonly child: ChildProcess
  readonly output: { readonly stdout: string; readonly stderr: string }
  readonly ended: Promise<number>
}

type Variables = Readonly<Record<string, string>>

/** Each test has a folder of its own, which its programs run in; they end with it. */
const it = test.extend<{
  readonly folder: string
  readonly start: (args: ReadonlyArray<string>, variables?: Variables) => Started
  /** Starts the server and waits until it says where it is. */
  readonly serve: (args?: ReadonlyArray<string>, variables?: Variables) => Promise<Started & { readonly url: string }>
}>({
  // oxlint-disable-next-line no-empty-pattern
  folder: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), "cli-"))
    await use(folder)
    await rm(folder, { recursive: true })
  },
  start: async ({ folder }, use) => {
    const children: Array<ChildProcess> = []
    await use((args, variables = {}) => {
      const child = spawn(process.execPath, [...fromBundle(), ...args], {
        cwd: folder,
        env: {
          PATH: process.env["PATH"] ?? "",
          NODE_COMPILE_CACHE: COMPILE_CACHE,
          BLOCKWATCHER_PORT: "0",
          ...variables,
        },
        stdio: ["ignore", "pipe", "pipe"],
      })
      children.push(child)
      const output = { stdout: "", stderr: "" }
      child.stdout.on("data", (chunk) => (output.stdout += chunk))
      child.stderr.on("data", (chunk) => (output.stderr += chunk))
      const ended = once(child, "close").then(([code]) => code as number)
      return { child, output, ended }
    })
    for (const child of children) if (child.exitCode === null) child.kill("SIGKILL")
  },
  serve: async ({ start }, use) => {
    await use(async (args = [], variables = {}) => {
      const server = start([FAKE, ...args], variables)
      await until(() => /open http\S+/.test(server.output.stdout), "the server is up")
      return { ...server, url: /open (http\S+)/.exec(server.output.stdout)![1]! }
    })
  },
})

const noStack = /\n\s+at .*\(?.*:\d+:\d+\)?/

describe.concurrent("blockwatcher serve", () => {
  it.for(["SIGTERM", "SIGINT"] as const)(
    "says where it is, serves, and ends in order at %s",
    async (signal, { serve }) => {
      const { child, ended, url, output } = await serve()
      assert.deepEqual(await graphqlData(url, `{ networks { id } }`), { networks: [{ id: "devnet" }] })
      child.kill(signal)
      assert.strictEqual(await ended, 0, output.stderr)
      assert.strictEqual(output.stderr, "")
    },
  )

  it("lets the engine drain before it ends", async ({ serve }) => {
    const { child, ended } = await serve(["300"])
    const started = Date.now()
    child.kill("SIGTERM")
    assert.strictEqual(await ended, 0)
    assert.isAtLeast(Date.now() - started, 300)
  })

  it("ends at once at a second signal", async ({ serve }) => {
    const { child, ended, output } = await serve(["60000"])
    child.kill("SIGTERM")
    await until(() => output.stdout.includes("finishing what is in flight"), "the drain began")
    await until(() => child.exitCode !== null || !child.kill("SIGTERM"), "it ended")
    assert.strictEqual(await ended, 143)
  })

  it("takes a signal that npm passes on at once for the same one", async ({ serve }) => {
    const { child, ended } = await serve(["100"])
    child.kill("SIGINT")
    child.kill("SIGTERM")
    assert.strictEqual(await ended, 0)
  })

  it("ends when npm, which started it, is told to", async () => {
    const npm = spawn("npm", ["run", "serve"], {
      cwd: root,
      env: { ...process.env, BLOCKWATCHER_PORT: "0", BLOCKWATCHER_DATABASE_URL: "memory:" },
      stdio: ["ignore", "pipe", "inherit"],
      // A group of its own, so that a server that npm leaves behind can be ended all the same.
      detached: true,
    })
    let output = ""
    npm.stdout.on("data", (chunk) => (output += chunk))
    // What npm leaves behind would keep its output open.
    let closed = false
    npm.once("close", () => (closed = true))
    try {
      await until(() => /open http\S+/.test(output), "the server is up")
      npm.kill("SIGTERM")
      await until(() => closed, "npm and the server ended")
    } finally {
      if (!closed) process.kill(-npm.pid!, "SIGKILL")
    }
    assert.include(output, "finishing what is in flight")
  })

  it("ends by force when the drain takes too long", async ({ serve }) => {
    const { child, ended, output } = await serve(["60000"], { BLOCKWATCHER_DRAIN_TIMEOUT_MS: "100" })
    child.kill("SIGTERM")
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, /did not finish within/)
  })

  it("refuses a bad environment, all of it at once, with no secret and no stack", async ({ start }) => {
    const { ended, output } = start([BIN, "serve"], {
      BLOCKWATCHER_PORT: "many",
      BLOCKWATCHER_DATABASE_URL: "mysql://me:hunter2@db/x",
      BLOCKWATCHER_API_TOKEN: "hunter 2",
    })
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, /BLOCKWATCHER_PORT is "many"/)
    assert.match(output.stderr, /BLOCKWATCHER_DATABASE_URL/)
    assert.match(output.stderr, /BLOCKWATCHER_API_TOKEN/)
    assert.notMatch(output.stderr + output.stdout, /hunter/)
    assert.notMatch(output.stderr + output.stdout, noStack)
  })

  it("says so when its port is in use", async ({ start }) => {
    const other = createServer().listen(0, "127.0.0.1")
    await once(other, "listening")
    const { port } = other.address() as AddressInfo
    const { ended, output } = start([FAKE], { BLOCKWATCHER_PORT: `${port}` })
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, new RegExp(`cannot listen on 127.0.0.1:${port}: the port is in use.*BLOCKWATCHER_PORT`))
    assert.notMatch(output.stderr + output.stdout, noStack)
    other.close()
  })

  it("does not start with seed files that are refused", async ({ folder, start }) => {
    await mkdir(join(folder, "networks"))
    await writeFile(join(folder, "networks/n.json"), "refuse me")
    const { ended, output } = start([FAKE], { BLOCKWATCHER_SEEDS_DIR: folder })
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, /networks\/n\.json: asks to be refused/)
    assert.notInclude(output.stdout, "is up")
  })
})

describe.concurrent("blockwatcher check", () => {
  it("accepts what is fine and starts nothing", async ({ folder, start }) => {
    const { ended, output } = start([BIN, "check"], { BLOCKWATCHER_SEEDS_DIR: folder })
    assert.strictEqual(await ended, 0, output.stderr)
    assert.match(output.stdout, /fine/)
  })

  it("names the seed files that are not", async ({ folder, start }) => {
    await mkdir(join(folder, "sinks"))
    await writeFile(join(folder, "sinks/s.json"), "{ no")
    await mkdir(join(folder, "networks"), { recursive: true })
    await writeFile(join(folder, "networks/n.json"), `{"id":"n","module":"nope","config":{}}`)
    const { ended, output } = start([BIN, "check"], { BLOCKWATCHER_SEEDS_DIR: folder })
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, /networks\/n\.json\.module: /)
    assert.match(output.stderr, /sinks\/s\.json: no JSON: .*line 1/)
  })
})

describe.concurrent("the blockwatcher command", () => {
  it("explains itself, and what it does not know", async ({ start }) => {
    const help = start([BIN, "--help"])
    assert.strictEqual(await help.ended, 0)
    for (const name of ["serve", "devnet", "check"]) assert.include(help.output.stdout, name)
    const unknown = start([BIN, "sevre"])
    assert.strictEqual(await unknown.ended, 1)
    assert.strictEqual(unknown.output.stdout, "")
    assert.match(
      unknown.output.stderr,
      /^blockwatcher: Unknown subcommand "sevre" .*\n\n.*\n +serve\nRun blockwatcher --help for what there is\.\n$/,
    )
    const flag = start([BIN, "dead-letters", "list", "--netwrk", "a"])
    assert.strictEqual(await flag.ended, 1)
    assert.match(
      flag.output.stderr,
      /^blockwatcher: Unrecognized flag: --netwrk .*\n\n.*\n +--network\nRun blockwatcher dead-letters list --help /,
    )
  })

  it("takes what concerns simulated providers together with --simulated only", async ({ start }) => {
    const { ended, output } = start([BIN, "devnet", "--seed", "3"])
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, /--faults and --seed go with --simulated/)
  })

  it("says in one line what to run instead under an older Node", async ({ start }) => {
    const older = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } })`
    const { ended, output } = start(["--import", `data:text/javascript,${encodeURIComponent(older)}`, BIN, "serve"])
    assert.strictEqual(await ended, 1)
    assert.match(output.stderr, /^blockwatcher needs Node 24 or newer, and this is 20\.1\.0: .*npm start.*\n$/)
  })
})
