import { Result, Schema } from "effect"
import type { Problem } from "../model/problem.ts"
import { decodeConfig } from "../plugin/decode-config.ts"

/** A definition as far as it can be read, and what is wrong with it. */
export interface DecodedDefinition<D> {
  /** Null when anything is wrong. */
  readonly definition: D | null
  /** The fields that can be read, with defaults in place of those that are wrong and have one. */
  readonly fields: Partial<D>
  readonly problems: ReadonlyArray<Problem>
}

type DefinitionSchema<D> = Schema.Codec<D, any> & { readonly fields: Readonly<Record<string, Schema.Codec<any, any>>> }

/** Decodes a definition so that its other fields can be judged as well when one is wrong: all problems are told at once. */
export const decodeDefinition = <D>(schema: DefinitionSchema<D>, input: unknown): DecodedDefinition<D> => {
  const whole = decodeConfig(schema, input)
  if (Result.isSuccess(whole)) return { definition: whole.success, fields: whole.success, problems: [] }
  const problems = whole.failure
  if (typeof input !== "object" || input === null) return { definition: null, fields: {}, problems }
  const wrong = new Set(problems.map(({ path }) => path.split(".", 1)[0]))
  const readable = new Map(Object.entries(input).filter(([name]) => !wrong.has(name)))
  const fields = Object.entries(schema.fields).flatMap(([name, field]) => {
    const written = readable.has(name) ? { [name]: readable.get(name) } : {}
    const decoded = decodeConfig(Schema.Struct({ [name]: field }), written)
    return Result.isSuccess(decoded) ? Object.entries(decoded.success) : []
  })
  return { definition: null, fields: Object.fromEntries(fields) as Partial<D>, problems }
}
