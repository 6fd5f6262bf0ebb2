import { type ChildProcess, spawn } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Effect, type Scope } from "effect"
import { DevnetError } from "./error.ts"

/** A running node. */
export interface Anvil {
  readonly url: string
  readonly wsUrl: string
  readonly pid: number
}

export interface AnvilOptions {
  /** 0 takes a free one. */
  readonly port: number
  /** Further arguments, such as `--block-time 1`. */
  readonly args: ReadonlyArray<string>
}

const LISTENING = /Listening on 127\.0\.0\.1:(\d+)/
const START_MS = 30_000
const KEPT_OUTPUT = 2_000

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" }

/** The native program; the package's own command would stay between as a second process. */
const program = Effect.try({
  try: () => {
    const resolve = createRequire(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json")).resolve
    const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`
    const file = process.platform === "win32" ? "anvil.exe" : "anvil"
    return join(dirname(resolve(`${name}/package.json`)), "bin", file)
  },
  catch: () =>
    new DevnetError({
      reason: `there is no anvil for ${process.platform} ${process.arch}; run npm install --save-dev @foundry-rs/anvil`,
    }),
})

/** Kills the node when this process is gone, however it went: its end of the pipe closes then. */
const guard = (pid: number): ChildProcess | null => {
  if (process.platform === "win32") return null
  const watcher = spawn("/bin/sh", ["-c", 'read -r _; kill -9 "$0"', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  })
  watcher.on("error", () => {})
  watcher.unref()
  return watcher
}

interface Running {
  readonly child: ChildProcess
  readonly watcher: ChildProcess | null
  readonly anvil: Anvil
}

const launch = (file: string, { port, args }: AnvilOptions) =>
  Effect.callback<Running, DevnetError>((resume) => {
    const child = spawn(file, ["--host", "127.0.0.1", "--port", String(port), ...args], {
      env: {},
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    const fail = (reason: string) => {
      clearTimeout(timer)
      child.kill("SIGKILL")
      resume(Effect.fail(new DevnetError({ reason: `${reason}: ${output.slice(-KEPT_OUTPUT).trim()}` })))
    }
    const timer = setTimeout(() => fail(`anvil did not listen within ${START_MS} ms`), START_MS)
    const onExit = (code: number | null, signal: string | null) => fail(`anvil ended (${code ?? signal})`)
    child.once("error", (error) => fail(`anvil could not be started (${error.message})`))
    child.once("exit", onExit)
    child.stderr.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-KEPT_OUTPUT)
    })
    const onOutput = (chunk: Buffer) => {
      output += chunk.toString()
      const taken = LISTENING.exec(output)?.[1]
      if (taken === undefined || child.pid === undefined) return
      clearTimeout(timer)
      child.off("exit", onExit)
      // What it prints from now on is let through unread: it must not wait for a full pipe.
      child.stdout.off("data", onOutput).resume()
      const anvil = { url: `http://127.0.0.1:${taken}`, wsUrl: `ws://127.0.0.1:${taken}`, pid: child.pid }
      resume(Effect.succeed({ child, watcher: guard(child.pid), anvil }))
    }
    child.stdout.on("data", onOutput)
    return Effect.sync(() => {
      clearTimeout(timer)
      child.kill("SIGKILL")
    })
  })

const stop = ({ child, watcher }: Running) =>
  Effect.callback<void>((resume) => {
    // The watcher goes first, so that it cannot kill by a number that means another process by then.
    watcher?.kill("SIGKILL")
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

/** Runs anvil on 127.0.0.1 until the scope ends. It also ends when this process is killed. */
export const startAnvil = (options: AnvilOptions): Effect.Effect<Anvil, DevnetError, Scope.Scope> =>
  program.pipe(
    Effect.flatMap((file) => Effect.acquireRelease(launch(file, options), stop, { interruptible: true })),
    Effect.map(({ anvil }) => anvil),
  )
