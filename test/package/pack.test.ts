import { type ChildProcess, execFile, spawn } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { stripTypeScriptTypes } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { Anvil } from "../support/anvil.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const bin = join(root, "node_modules/.bin")
// The node that runs this test also runs npm's scripts and the program.
const environment = { ...process.env, PATH: `${bin}:${dirname(process.execPath)}:${process.env["PATH"]}` }

const run = async (cwd: string, command: string, ...parameters: ReadonlyArray<string>): Promise<string> =>
  (await promisify(execFile)(command, parameters, { cwd, env: environment, maxBuffer: 64 * 2 ** 20 })).stdout

/** Everything that a child wrote, and a wait for a text in it. */
const watch = (child: ChildProcess) => {
  let output = ""
  let ended = false
  const waiting = new Set<() => void>()
  const wake = () => waiting.forEach((check) => check())
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      wake()
    })
  const exit = new Promise<number | null>((resolve) =>
    child.once("close", (code) => {
      ended = true
      wake()
      resolve(code)
    }),
  )
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const check = () => {
        const found = pattern.exec(output)
        if (found === null && !ended) return
        waiting.delete(check)
        if (found === null) reject(new Error(`the process ended before ${pattern} was seen:\n${output}`))
        else resolve(found)
      }
      waiting.add(check)
      check()
    })
  return { exit, until }
}

const children = new Set<ChildProcess>()

const start = (cwd: string, command: string, ...parameters: ReadonlyArray<string>) => {
  const child = spawn(command, parameters, { cwd, env: environment, stdio: ["ignore", "pipe", "pipe"] })
  children.add(child)
  child.once("close", () => children.delete(child))
  return { child, ...watch(child) }
}

let project: string
let packed: ReadonlyArray<{ readonly path: string }>

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "blockwatcher-package-"))
  const output = await run(root, "npm", "pack", "--json", "--pack-destination", project)
  // What the build writes stands before the JSON.
  const [pack] = JSON.parse(output.slice(output.indexOf("[\n"))) as [
    { readonly filename: string; readonly files: typeof packed },
  ]
  packed = pack.files
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly peerDependencies: { readonly effect: string }
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }))
  const effect = `effect@${manifest.peerDependencies.effect}`
  await run(project, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", `./${pack.filename}`, effect)
}, 600_000)

afterAll(async () => {
  await Promise.all(
    [...children].map((child) => {
      const closed = new Promise((resolve) => child.once("close", resolve))
      child.kill("SIGKILL")
      return closed
    }),
  )
  await rm(project, { recursive: true, force: true })
}, 600_000)

const word = (value: bigint): string => value.toString(16).padStart(64, "0")

/** Code that emits `Transfer(0x11, 0x22, 1000)` when it is deployed: MSTORE the value, push three topics, LOG3. */
const transferCode = [
  ["7f", word(1000n), "600052"],
  ["7f", word(0x22n), "7f", word(0x11n)],
  ["7f", "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"],
  ["60206000", "a3", "00"],
]
  .flat()
  .join("")

const call = async (url: string, method: string, params: ReadonlyArray<unknown>): Promise<unknown> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  })
  const { result } = (await response.json()) as { readonly result: unknown }
  return result
}

describe("the published package", () => {
  it("holds compiled code with types, and none of the sources", () => {
    const paths = packed.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining([
        "dist/core/index.js",
        "dist/core/index.d.ts",
        "dist/core/plugin/loader-native.js",
        "dist/plugins/sources/evm-rpc/index.js",
        "dist/server/cli/main.js",
        "bin/blockwatcher.js",
        "README.md",
        "LICENSE",
      ]),
    )
    expect(paths.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"))).toStrictEqual([])
    expect(paths.filter((path) => /^(test|bench|tools|core|plugins|server)\//.test(path))).toStrictEqual([])
    // It brings no second runtime and no second Effect.
    expect(readdirSync(join(project, "node_modules")).filter((name) => name.startsWith("node-linux"))).toStrictEqual([])
    expect(readdirSync(join(project, "node_modules/blockwatcher"))).not.toContain("node_modules")
  })

  it("lets a program embed the runtime and see a match on a chain", { timeout: 120_000 }, async () => {
    const source = readFileSync(join(root, "examples/embed.ts"), "utf8")
    writeFileSync(join(project, "embed.js"), stripTypeScriptTypes(source))
    const anvil = await Anvil.start()
    onTestFinished(() => anvil.stop())
    const { url } = anvil
    const [from] = (await call(url, "eth_accounts", [])) as ReadonlyArray<string>

    const program = start(project, process.execPath, "embed.js", url)
    // The program begins at the newest block of its start, which only it knows: transfers go on until one is seen.
    const transfers = setInterval(() => {
      void call(url, "eth_sendTransaction", [{ from, data: `0x${transferCode}`, gas: "0x30d40" }])
    }, 500)
    await program.until(/Transfer[^]*value: '1000'|"value":\s*"1000"/).finally(() => clearInterval(transfers))
    program.child.kill("SIGTERM")
    expect(await program.exit).toSatisfy((code: number | null) => code === 0 || code === 130 || code === 143)
  })

  it("loads plugins in TypeScript from a folder without packages of its own", { timeout: 120_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "blockwatcher-dropped-"))
    cpSync(join(root, "examples/plugins"), folder, { recursive: true })
    writeFileSync(
      join(project, "plugins.js"),
      `import { Effect } from "effect"
       import { Blockwatcher, layerSqlite, Resources } from "blockwatcher"
       const runtime = Blockwatcher.layer({ storage: layerSqlite({ path: ":memory:" }), pluginDirectories: [process.argv[2]] })
       const reports = await Effect.runPromise(Resources.use((r) => r.plugins).pipe(Effect.provide(runtime)))
       console.log(JSON.stringify(reports.map(({ name, kind, error }) => ({ name, kind, error }))))`,
    )
    const output = await run(project, process.execPath, "plugins.js", folder).finally(() =>
      rmSync(folder, { recursive: true }),
    )
    expect(JSON.parse(output.trim().split("\n").at(-1)!)).toStrictEqual([
      { name: "file", kind: "sink", error: null },
      { name: "ticker", kind: "source", error: null },
    ])
  })

  it("type-checks for the programs that use it", { timeout: 120_000 }, async () => {
    const folder = join(project, "typed")
    mkdirSync(join(folder, "plugins"), { recursive: true })
    cpSync(join(root, "examples/embed.ts"), join(folder, "embed.ts"))
    cpSync(join(root, "examples/plugins"), join(folder, "plugins"), { recursive: true })
    const options = { strict: true, noEmit: true, skipLibCheck: true, module: "nodenext", target: "esnext" }
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: { ...options, types: ["node"], typeRoots: [join(root, "node_modules/@types")] },
      }),
    )
    await expect(run(folder, join(bin, "tsc"), "-p", ".")).resolves.toBe("")
  })

  it("brings its command", { timeout: 60_000 }, async () => {
    expect(await run(project, join(project, "node_modules/.bin/blockwatcher"), "--help")).toContain("serve")
  })

  it("runs on simulated providers where there is no other node", { timeout: 120_000 }, async () => {
    const command = join(project, "node_modules/.bin/blockwatcher")
    const program = start(project, "env", "BLOCKWATCHER_PORT=0", command, "devnet", "--simulated", "--seed", "7")
    await program.until(/--faults some --seed 7/)
    await program.until(/\\"type\\":\\"match\\"/)
    await program.until(/devnet: what is wrong now: /)
    program.child.kill("SIGTERM")
    expect(await program.exit).toBe(0)
  })
})
