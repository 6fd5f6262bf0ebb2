import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect, type Scope } from "effect"

const PROGRAM = join(import.meta.dirname, "bank/server.ts")

/**
 * Runs the bank as a process beside this one, until the scope closes; answers where it listens. It hears nothing of a Ctrl-C,
 * so that calls that are under way get their answers.
 */
export const runBank = (file: string): Effect.Effect<string, Error, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [PROGRAM, "--file", file], {
        detached: true,
        stdio: ["ignore", "pipe", "inherit", "ipc"],
      }),
    ),
    (bank) => Effect.sync(() => bank.kill()),
  ).pipe(
    Effect.flatMap((bank) =>
      Effect.tryPromise({
        try: async () => {
          for await (const line of createInterface({ input: bank.stdout! })) {
            const url = /^bank: open (\S+)$/.exec(line)?.[1]
            if (url !== undefined) return url
          }
          throw new Error("the bank ended before it was open")
        },
        catch: (error) => (error instanceof Error ? error : new Error(String(error))),
      }),
    ),
  )
