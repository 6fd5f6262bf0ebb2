import { Effect, Schema } from "effect"
import { isBrokenReference } from "../../../core/plugin/secrets.ts"

const MAX_TIMEOUT_MS = 600_000
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

const holdsNul = (text: string): boolean => text.includes("\0")

const ScriptPath = Schema.NonEmptyString.check(
  Schema.makeFilter((path) =>
    path.startsWith("/") || path.split(/[/\\]/).includes("..") || holdsNul(path)
      ? "write a path inside the scripts directory, relative to it and without '..'"
      : undefined,
  ),
)

const Argument = Schema.String.check(
  Schema.makeFilter((text) => (holdsNul(text) ? "an argument may not hold the character NUL" : undefined)),
)

const variableProblem = (name: string, value: string): string | null => {
  if (!VARIABLE.test(name)) return "this is no name of a variable; use letters, digits and '_'"
  if (name.startsWith("BLOCKWATCHER_")) return "blockwatcher sets variables with this prefix itself; use another name"
  if (isBrokenReference(value)) return "this is no valid reference; write env:NAME or file:PATH"
  return holdsNul(value) ? "a variable may not hold the character NUL" : null
}

const Variables = Schema.Record(Schema.String, Schema.String).check(
  Schema.makeFilter((variables) =>
    Object.entries(variables).flatMap(([name, value]) => {
      const issue = variableProblem(name, value)
      return issue === null ? [] : [{ path: [name], issue }]
    }),
  ),
)

/**
 * `path` of an executable file, relative to the scripts directory; `args` for it; `timeout_ms` for one run; `env`,
 * further variables, whose values may be secret references.
 */
export const ScriptConfig = Schema.Struct({
  path: ScriptPath,
  args: Schema.Array(Argument).pipe(Schema.withDecodingDefault(Effect.succeed([]))),
  timeout_ms: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MAX_TIMEOUT_MS })).pipe(
    Schema.withDecodingDefault(Effect.succeed(10_000)),
  ),
  env: Variables.pipe(Schema.withDecodingDefault(Effect.succeed({}))),
})
export type ScriptConfig = typeof ScriptConfig.Type
