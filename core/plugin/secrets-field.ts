import { Effect, Redacted } from "effect"
import type { Problem } from "../model/problem.ts"
import { isSecretReference, Secrets } from "./secrets.ts"

/** A config field's value, and whether it came from a reference; or why there is none, which names no value. */
export type ResolvedField = { readonly value: string; readonly isSecret: boolean } | { readonly problem: Problem }

/**
 * The value of a config field that holds a plain value or a secret reference. `check` says what is wrong with a resolved
 * value, or null. A problem does not fail, so that all problems of a config can be reported together.
 */
export const resolveField = Effect.fnUntraced(function* (
  field: string,
  text: string,
  check: (value: string) => string | null,
) {
  if (!isSecretReference(text)) return { value: text, isSecret: false } satisfies ResolvedField
  const secrets = yield* Secrets
  return yield* secrets.resolve(text).pipe(
    Effect.map((secret): ResolvedField => {
      const value = Redacted.value(secret)
      const problem = check(value)
      return problem === null ? { value, isSecret: true } : { problem: { path: field, message: `${text}: ${problem}` } }
    }),
    Effect.catchTag("SecretUnavailable", (error) =>
      Effect.succeed<ResolvedField>({ problem: { path: field, message: error.message } }),
    ),
  )
})

/** The problems among fields, in their order, for `PluginRefused.of`. */
export const fieldProblems = (fields: ReadonlyArray<ResolvedField>): ReadonlyArray<Problem> =>
  fields.flatMap((field) => ("problem" in field ? [field.problem] : []))
