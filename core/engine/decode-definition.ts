import { Result, type Schema } from "effect"
import type { Problem } from "../model/problem.ts"
import { decodeConfig } from "../plugin/decode-config.ts"

/** A definition as far as it can be read, and what is wrong with it. */
export interface DecodedDefinition<D> {
  /** With defaults in place of fields that are wrong; null when the others make no definition. */
  readonly definition: D | null
  readonly problems: ReadonlyArray<Problem>
}

/** Decodes a definition so that its other fields can be judged as well when one is wrong: all problems are told at once. */
export const decodeDefinition = <D>(schema: Schema.Codec<D, any>, input: unknown): DecodedDefinition<D> => {
  const whole = decodeConfig(schema, input)
  if (Result.isSuccess(whole)) return { definition: whole.success, problems: [] }
  const problems = whole.failure
  if (typeof input !== "object" || input === null) return { definition: null, problems }
  const wrong = new Set(problems.map(({ path }) => path.split(".", 1)[0]))
  const rest = decodeConfig(schema, Object.fromEntries(Object.entries(input).filter(([field]) => !wrong.has(field))))
  return { definition: Result.isSuccess(rest) ? rest.success : null, problems }
}
