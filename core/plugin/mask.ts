import { Result } from "effect"
import type { Problem } from "../model/problem.ts"
import { isSecretReference } from "./secrets.ts"

type Path = ReadonlyArray<string>

const MASK = "***"

/** What is shown of a sensitive string: references and URLs that hold only an origin as they are, else no secret part. */
export const maskString = (value: string): string => {
  if (isSecretReference(value)) return value
  const url = URL.parse(value)
  if (url === null || url.host === "") return MASK
  const bare =
    url.username === "" && url.password === "" && /^\/?$/.test(url.pathname) && url.search === "" && url.hash === ""
  return bare ? value : `${url.protocol}//${url.host}/${MASK}`
}

/** Whether a text has the form of a mask. */
const isMask = (value: unknown): boolean =>
  typeof value === "string" && (value === MASK || /^[a-z][a-z0-9+.-]*:\/\/[^/?#@]+\/\*\*\*$/i.test(value))

const maskValue = (value: unknown): unknown => {
  if (value === null || value === undefined) return value
  return typeof value === "string" ? maskString(value) : MASK
}

const segments = (patterns: ReadonlyArray<string>): ReadonlyArray<Path> => patterns.map((pattern) => pattern.split("."))

/** The patterns that go on below `key`. */
const below = (patterns: ReadonlyArray<Path>, key: string): ReadonlyArray<Path> =>
  patterns.filter(([head]) => head === "*" || head === key).map(([, ...rest]) => rest)

const endsHere = (patterns: ReadonlyArray<Path>): boolean => patterns.some((pattern) => pattern.length === 0)

/**
 * Whether a value at `path` may hold something sensitive: the path is named by a pattern (`url`, `urls.*`,
 * `headers.*`), lies below one that is, or holds one.
 */
export const isSensitive = (path: ReadonlyArray<string>, patterns: ReadonlyArray<string>): boolean =>
  segments(patterns).some((pattern) =>
    path.every((key, i) => i >= pattern.length || pattern[i] === "*" || pattern[i] === key),
  )

/** A copy of a config in which what stands at the sensitive paths is masked. */
export const maskConfig = <Config>(config: Config, sensitive: ReadonlyArray<string>): Config =>
  mask(config, segments(sensitive)) as Config

const mask = (value: unknown, patterns: ReadonlyArray<Path>): unknown => {
  if (patterns.length === 0) return value
  if (endsHere(patterns)) return maskValue(value)
  if (Array.isArray(value)) return value.map((element, i) => mask(element, below(patterns, `${i}`)))
  return isRecord(value) ? mapRecord(value, (element, key) => mask(element, below(patterns, key))) : value
}

/**
 * Puts the stored values back where an input holds their masks, so that what was shown can be sent back. In a list the
 * entry of the same index is taken, else one of the same mask that no other index took. A mask that stands for nothing
 * stored is a problem; all are reported.
 */
export const unmaskConfig = <Config>(
  input: Config,
  stored: unknown,
  sensitive: ReadonlyArray<string>,
): Result.Result<Config, ReadonlyArray<Problem>> => {
  const problems: Array<Problem> = []
  const config = unmask(input, stored, segments(sensitive), [], problems) as Config
  return problems.length === 0 ? Result.succeed(config) : Result.fail(problems)
}

const unmask = (
  input: unknown,
  stored: unknown,
  patterns: ReadonlyArray<Path>,
  path: Path,
  problems: Array<Problem>,
): unknown => {
  if (patterns.length === 0) return input
  if (endsHere(patterns)) return unmaskValue(input, stored, path, problems)
  if (Array.isArray(input)) return unmaskList(input, Array.isArray(stored) ? stored : [], patterns, path, problems)
  if (!isRecord(input)) return input
  const before = isRecord(stored) ? stored : {}
  return mapRecord(input, (element, key) =>
    unmask(
      element,
      Object.hasOwn(before, key) ? before[key] : undefined,
      below(patterns, key),
      [...path, key],
      problems,
    ),
  )
}

const unmaskValue = (input: unknown, stored: unknown, path: Path, problems: Array<Problem>): unknown => {
  if (stored !== undefined && stored !== null && input === maskValue(stored)) return stored
  if (isMask(input))
    problems.push({
      path: path.join("."),
      message: `${JSON.stringify(input)} is what is shown instead of a stored value, and none is stored here; write the value itself`,
    })
  return input
}

const unmaskList = (
  input: ReadonlyArray<unknown>,
  stored: ReadonlyArray<unknown>,
  patterns: ReadonlyArray<Path>,
  path: Path,
  problems: Array<Problem>,
): unknown => {
  const stays = (i: number) => i < stored.length && input[i] === maskValue(stored[i])
  const taken = new Set(input.keys().filter(stays))
  const origin = (element: unknown, i: number): number => {
    if (!isMask(element) || stays(i) || !endsHere(below(patterns, `${i}`))) return i
    const same = stored.flatMap((value, at) => (maskValue(value) === element ? [at] : []))
    const from = same.find((at) => !taken.has(at)) ?? same[0] ?? i
    taken.add(from)
    return from
  }
  return input.map((element, i) =>
    unmask(element, stored[origin(element, i)], below(patterns, `${i}`), [...path, `${i}`], problems),
  )
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null

const mapRecord = (
  record: { readonly [key: string]: unknown },
  change: (value: unknown, key: string) => unknown,
): { readonly [key: string]: unknown } =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
