import { hash } from "node:crypto"
import { Result } from "effect"
import type { Problem } from "../model/problem.ts"
import type { ResourceKind } from "../storage/stored.ts"

/** A file that describes one resource, as it was read. */
export interface SeedFile {
  readonly kind: ResourceKind
  /** For messages; relative to where the seeds lie. */
  readonly path: string
  readonly text: string
}

/** A seed file whose JSON could be read, in the form that resources are put in. */
export interface Seed extends SeedFile {
  readonly hash: string
  readonly input: Readonly<Record<string, unknown>>
  /** Keys that are not written as seed files write them; the rest of the file can be judged all the same. */
  readonly problems: ReadonlyArray<Problem>
}

type Names = { readonly [snake: string]: string | { readonly to: string; readonly below: Names } }

/** The keys that seed files write in snake_case; plugins' own JSON (`config`, `selector`) is left as it is. */
const NAMES: Names = {
  journal_depth: "journalDepth",
  retry: {
    to: "retry",
    below: { max_attempts: "maxAttempts", initial_backoff_ms: "initialBackoffMs", max_backoff_ms: "maxBackoffMs" },
  },
  throttle: { to: "throttle", below: { max_deliveries: "maxDeliveries", window_ms: "windowMs" } },
  aggregate: { to: "aggregate", below: { window_ms: "windowMs", max_batch: "maxBatch" } },
  gate: { to: "gate", below: { window_ms: "windowMs" } },
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const rename = (
  value: Readonly<Record<string, unknown>>,
  names: Names,
  path: string,
  problems: Array<Problem>,
): Record<string, unknown> => {
  const renamed: Record<string, unknown> = {}
  for (const [key, inner] of Object.entries(value)) {
    const name = names[key]
    const written = Object.entries(names).find(([, to]) => to === key)?.[0]
    if (name === undefined) {
      if (written !== undefined) {
        problems.push({ path: `${path}${key}`, message: `unknown key; seed files write it as ${written}` })
      }
      renamed[key] = inner
    } else if (typeof name === "string") renamed[name] = inner
    else renamed[name.to] = isObject(inner) ? rename(inner, name.below, `${path}${key}.`, problems) : inner
  }
  return renamed
}

/** Reads a seed file's JSON into the form that resources are put in; fails if that cannot be read at all. */
export const readSeed = (file: SeedFile): Result.Result<Seed, ReadonlyArray<Problem>> => {
  const parsed = Result.try({
    try: (): unknown => JSON.parse(file.text),
    catch: (error) => [{ path: "", message: `no JSON: ${error instanceof Error ? error.message : String(error)}` }],
  })
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  if (!isObject(parsed.success)) {
    return Result.fail([{ path: "", message: "must be one JSON object, the definition of one resource" }])
  }
  const problems: Array<Problem> = []
  const input = rename(parsed.success, NAMES, "", problems)
  return Result.succeed({ ...file, hash: hash("sha256", file.text, "hex"), input: spelt(input), problems })
}

/** Names of policies are in capitals in GraphQL, in small letters in JSON: seed files may have either. */
const spelt = (input: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const { buffer, gate } = input
  return {
    ...input,
    ...(typeof buffer === "string" ? { buffer: buffer.toUpperCase() } : {}),
    ...(isObject(gate) && typeof gate["type"] === "string"
      ? { gate: { ...gate, type: gate["type"].toLowerCase() } }
      : {}),
  }
}

const WORDS = new Map(
  Object.entries(NAMES).flatMap(([snake, name]) =>
    typeof name === "string"
      ? [[name, snake] as const]
      : Object.entries(name.below).map(([snake, camel]) => [String(camel), snake] as const),
  ),
)

const seedWords = (message: string): string => message.replaceAll(/\w+/g, (word) => WORDS.get(word) ?? word)

/** A problem in the words of a seed file. */
export const seedProblem = ({ path, message }: Problem): Problem => {
  const [field = ""] = path.split(".", 1)
  // Elsewhere, and in an expression, a word like these is a person's own.
  const isOurs = (Object.hasOwn(NAMES, field) && path !== "gate.by") || message.startsWith("is not a known key")
  return { path: seedPath(path), message: isOurs ? seedWords(message) : message }
}

const seedPath = (path: string): string => {
  let names: Names = NAMES
  return path
    .split(".")
    .map((segment) => {
      const found = Object.entries(names).find(([, name]) => (typeof name === "string" ? name : name.to) === segment)
      if (found === undefined) {
        names = {}
        return segment
      }
      names = typeof found[1] === "string" ? {} : found[1].below
      return found[0]
    })
    .join(".")
}
