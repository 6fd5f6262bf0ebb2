import { execFile } from "node:child_process"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect } from "effect"

/** Says what an `import()` threw, with the file and line in the plugin where that can be told. */
export const describeImportError = Effect.fnUntraced(function* (
  error: unknown,
  folder: string,
  files: ReadonlyArray<string>,
) {
  if (!(error instanceof Error))
    return `the import threw ${typeof error === "string" ? JSON.stringify(error) : `a ${typeof error}`}, not an Error`
  const place = placeIn(error, folder) ?? (error instanceof SyntaxError ? yield* placeOfSyntaxError(files) : undefined)
  return `${error.name}: ${error.message}${place === undefined ? "" : ` (${place})`}`
})

/** A syntax error names its place in the first line of its stack, every other error in its frames. */
const placeIn = (error: Error, folder: string): string | undefined => {
  const lines = (error.stack ?? "").split("\n")
  const heading = /^(?:file:\/\/)?(\/.*|[A-Za-z]:\\.*):(\d+)$/.exec(lines[0] ?? "")
  if (heading !== null) return `${decodeURI(heading[1]!)}:${heading[2]}`
  const prefix = pathToFileURL(`${folder}/`).href
  for (const line of lines) {
    const frame = /(file:\/\/\S+):(\d+):\d+\)?$/.exec(line)
    if (frame?.[1]?.startsWith(prefix) === true) return `${fileURLToPath(frame[1])}:${frame[2]}`
  }
  return undefined
}

/** For JavaScript that does not parse, node tells the place only on the standard error of a process of its own. */
const placeOfSyntaxError = (files: ReadonlyArray<string>): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    for (const file of files) {
      const line = yield* Effect.callback<string | undefined>((resume) => {
        const child = execFile(
          process.execPath,
          ["--check", file],
          { env: {}, timeout: 10_000 },
          (failure, _, stderr) => resume(Effect.succeed(failure === null ? undefined : /:(\d+)\n/.exec(stderr)?.[1])),
        )
        return Effect.sync(() => child.kill())
      })
      if (line !== undefined) return `${file}:${line}`
    }
    return undefined
  })
