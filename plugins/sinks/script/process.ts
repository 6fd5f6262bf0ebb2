import { type ChildProcess, spawn } from "node:child_process"
import { Effect } from "effect"

/** A run of a program: where, with what, and how long. */
export interface Run {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly directory: string
  readonly env: Readonly<Record<string, string>>
  /** Written to its standard input, which is closed then. */
  readonly input: string
  readonly timeoutMs: number
}

/** How a run ended; `stderr` is the end of what it wrote there. */
export type RunEnd =
  | { readonly kind: "exited"; readonly code: number; readonly stderr: string }
  | { readonly kind: "signalled"; readonly signal: string; readonly stderr: string }
  | { readonly kind: "timed-out"; readonly stderr: string }
  | { readonly kind: "not-started"; readonly code: string }

const KEPT_STDERR_BYTES = 4_096

/** How long the last bytes of stderr are waited for when a process that left the group still holds it open. */
const DRAIN_MS = 250

const notStarted = (error: NodeJS.ErrnoException): RunEnd => ({ kind: "not-started", code: error.code ?? error.name })

/** Some errors of a start are thrown (arguments that are too long), others come as an event. */
const start = (options: Run) => {
  try {
    return spawn(options.file, options.args, {
      cwd: options.directory,
      env: options.env,
      detached: true,
      stdio: ["pipe", "ignore", "pipe"],
    })
  } catch (error) {
    return notStarted(error instanceof Error ? error : new Error(String(error)))
  }
}

const killGroup = (child: ChildProcess) => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    // Nobody is left in the group, which is what was wanted.
  }
}

const keepTail = (child: ChildProcess): (() => string) => {
  let tail = Buffer.alloc(0)
  child.stderr?.on("data", (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-KEPT_STDERR_BYTES)
  })
  return () => tail.toString()
}

/**
 * Runs a program in a process group of its own and waits for its end. The group is killed when the time is up, when the
 * effect is interrupted, and when the program exits and leaves others behind. Its standard output goes nowhere.
 */
export const run = (options: Run): Effect.Effect<RunEnd> =>
  Effect.callback((resume) => {
    const child = start(options)
    if ("kind" in child) return resume(Effect.succeed(child))
    const stderr = keepTail(child)
    const settle = (end: RunEnd) => {
      clearTimeout(timer)
      child.stderr?.destroy()
      resume(Effect.succeed(end))
    }
    const timer = setTimeout(() => {
      killGroup(child)
      settle({ kind: "timed-out", stderr: stderr() })
    }, options.timeoutMs)
    child.on("error", (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) settle(notStarted(error))
    })
    child.on("exit", (code, signal) => {
      killGroup(child)
      clearTimeout(timer)
      const end = () =>
        settle(
          code === null
            ? { kind: "signalled", signal: signal ?? "unknown", stderr: stderr() }
            : { kind: "exited", code, stderr: stderr() },
        )
      const drain = setTimeout(end, DRAIN_MS)
      child.once("close", () => {
        clearTimeout(drain)
        end()
      })
    })
    // A program may exit, or close its input, without having read it.
    child.stdin?.on("error", () => {})
    child.stdin?.end(options.input)
    return Effect.sync(() => {
      clearTimeout(timer)
      killGroup(child)
      child.stderr?.destroy()
    })
  })
