import { type ChildProcess, spawn } from "node:child_process"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, type Scope } from "effect"
import { COMPILE_CACHE, fromBundle } from "./bundle/bundled.ts"

/** A process with a group of its own. It and its group are killed when the scope ends, or when the tests' process does. */
export interface Process {
  readonly pid: number
  /** What it wrote so far. */
  readonly output: { readonly stdout: string; readonly stderr: string }
  /** Waits for its end: an exit code, or the signal that ended it. */
  readonly ended: Effect.Effect<number | NodeJS.Signals>
  readonly hasEnded: () => boolean
  /** Asks it to end (SIGTERM), and waits until it has. */
  readonly stop: Effect.Effect<number | NodeJS.Signals>
  /** Ends it at once (SIGKILL), and waits until it is gone. */
  readonly kill: Effect.Effect<void>
  /** Sends it a signal, if it is there. */
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Lets it run no further (SIGSTOP). */
  readonly freeze: Effect.Effect<void>
  /** Lets it run on (SIGCONT). */
  readonly thaw: Effect.Effect<void>
  /** The memory that it holds at present. */
  readonly residentBytes: Effect.Effect<number>
  /** Waits until a condition holds that it brings about; dies with its output if it ends before. */
  readonly waitUntil: (what: string, condition: () => boolean) => Effect.Effect<void>
}

/** A `blockwatcher serve`. */
export interface Server extends Process {
  /** Waits until it is up, and answers where its GraphQL is; dies with its output if it ends before. */
  readonly url: Effect.Effect<string>
}

const BIN = join(import.meta.dirname, "../../bin/blockwatcher.js")

/** Generous, because a machine that is busy starts a process slowly. */
const PATIENCE_MS = 90_000

const LOOK_AGAIN_MS = 20

/** What the server says once it is up. */
const UP = /open (http\S+)/

/** Kills the group of `pid` when this process is gone, however it went: its end of the pipe closes then. */
const guard = (pid: number): ChildProcess => {
  const watcher = spawn("/bin/sh", ["-c", 'read -r _; kill -9 -- "-$0"', `${pid}`], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  })
  watcher.unref()
  return watcher
}

/** Starts a program of Node, from the bundle of its packages; waits for nothing. */
export const launchNode = (
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Effect.Effect<Process, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const child = spawn(process.execPath, [...fromBundle(), ...args], {
        cwd: options.cwd,
        env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, ...options.env },
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      })
      if (child.pid === undefined) return yield* Effect.die(new Error("the process could not be started"))
      const { pid } = child
      const watcher = guard(pid)
      const output = { stdout: "", stderr: "" }
      child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()))
      child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()))
      const end = Deferred.makeUnsafe<number | NodeJS.Signals>()
      const hasEnded = () => child.exitCode !== null || child.signalCode !== null
      // The number may soon mean another process: nobody watches it any more.
      child.once("exit", () => watcher.kill("SIGKILL"))
      child.once("close", (code, signal) => Deferred.doneUnsafe(end, Effect.succeed(code ?? signal ?? 0)))
      const send = (signal: NodeJS.Signals) =>
        Effect.sync(() => {
          if (hasEnded()) return
          try {
            process.kill(-pid, signal)
          } catch (cause) {
            // It is gone, and that is not heard of yet.
            if ((cause as NodeJS.ErrnoException).code !== "ESRCH") throw cause
          }
        })
      const ended = Deferred.await(end)
      return {
        pid,
        output,
        ended,
        hasEnded,
        stop: Effect.andThen(send("SIGTERM"), ended),
        kill: Effect.asVoid(Effect.andThen(send("SIGKILL"), ended)),
        signal: send,
        freeze: send("SIGSTOP"),
        thaw: send("SIGCONT"),
        residentBytes: Effect.promise(() => readFile(`/proc/${pid}/status`, "utf8")).pipe(
          Effect.map((status) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024),
        ),
        waitUntil: (what, condition) =>
          waitUntil(what, () => {
            if (condition()) return true
            if (hasEnded()) throw new Error(`it ended before ${what}:\n${output.stdout}\n${output.stderr}`)
            return false
          }),
      } satisfies Process
    }),
    ({ kill }) => kill,
  )

/**
 * Starts `blockwatcher serve` on a free port with these BLOCKWATCHER_ variables (named without the prefix); waits for
 * nothing.
 *
 * @param options.program a file that runs a server in place of `blockwatcher serve`
 */
export const launchServe = (
  variables: Readonly<Record<string, string>>,
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>>; readonly program?: string } = {},
): Effect.Effect<Server, never, Scope.Scope> =>
  launchNode(options.program === undefined ? [BIN, "serve"] : [options.program], {
    cwd: options.cwd ?? tmpdir(),
    env: {
      BLOCKWATCHER_PORT: "0",
      ...Object.fromEntries(Object.entries(variables).map(([name, value]) => [`BLOCKWATCHER_${name}`, value])),
      ...options.env,
    },
  }).pipe(
    Effect.map((launched) => ({
      ...launched,
      url: launched
        .waitUntil("the server is up", () => UP.test(launched.output.stdout))
        .pipe(Effect.map(() => UP.exec(launched.output.stdout)![1]!)),
    })),
  )

/** Starts `blockwatcher serve` and waits until it is up. */
export const startServe = Effect.fnUntraced(function* (...args: Parameters<typeof launchServe>) {
  const server = yield* launchServe(...args)
  return { ...server, url: yield* server.url }
})

/** A started server, whose GraphQL is at `url`. */
export type StartedServer = Effect.Success<ReturnType<typeof startServe>>

/** Looks at a value again and again until it is as it should be; dies with the last one when it never is. */
export const waitFor = <A, E, R>(
  what: string,
  look: Effect.Effect<A, E, R>,
  isRight: (value: A) => boolean,
  withinMs = PATIENCE_MS,
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const deadline = Date.now() + withinMs
    const again: Effect.Effect<A, E, R> = Effect.flatMap(look, (value) => {
      if (isRight(value)) return Effect.succeed(value)
      return Date.now() > deadline
        ? Effect.die(new Error(`never came true: ${what}; at last there was ${JSON.stringify(value)}`))
        : Effect.andThen(Effect.sleep(LOOK_AGAIN_MS), again)
    })
    return again
  })

/** Waits until a condition holds. */
export const waitUntil = (what: string, condition: () => boolean, withinMs = PATIENCE_MS): Effect.Effect<void> =>
  Effect.asVoid(waitFor(what, Effect.sync(condition), (holds) => holds, withinMs))

/** A folder that is removed with the scope. */
export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "blockwatcher-system-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
)

/** Writes files, and the folders that they lie in; a value that is no string is written as JSON. */
export const writeFiles = (folder: string, files: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.promise(async () => {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(folder, path, ".."), { recursive: true })
      await writeFile(join(folder, path), typeof content === "string" ? content : JSON.stringify(content))
    }
  })
