import { access, constants, realpath, stat } from "node:fs/promises"
import { join, sep } from "node:path"
import { Effect } from "effect"

interface Located {
  /** The real path of the file to run. */
  readonly file: string
  /** The real path of the scripts directory. */
  readonly directory: string
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error)

const attempt = <A>(what: string, run: () => Promise<A>): Effect.Effect<A, string> =>
  Effect.tryPromise({ try: run, catch: (error) => `${what} (${codeOf(error)})` })

/** Finds a script inside the scripts directory, symbolic links resolved; fails with what is wrong and what to do. */
export const locate = Effect.fnUntraced(function* (scripts: string, path: string) {
  const directory = yield* attempt(`the scripts directory ${scripts} cannot be read; create it`, () =>
    realpath(scripts),
  )
  const file = yield* attempt(`${path} is not in the scripts directory ${scripts}; put it there`, () =>
    realpath(join(directory, path)),
  )
  if (!file.startsWith(directory.endsWith(sep) ? directory : directory + sep)) {
    return yield* Effect.fail(`${path} leads out of the scripts directory ${scripts}; put the file itself there`)
  }
  const stats = yield* attempt(`${path} cannot be read`, () => stat(file))
  if (!stats.isFile()) return yield* Effect.fail(`${path} is not a file; name an executable file`)
  yield* attempt(`${path} may not be executed; make it executable with chmod +x`, () => access(file, constants.X_OK))
  return { file, directory } satisfies Located
})
