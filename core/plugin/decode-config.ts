import { Result, Schema, type SchemaAST, type SchemaIssue } from "effect"
import type { Problem } from "../model/problem.ts"
import { alternatives, discriminator, expected } from "./decode-expected.ts"
import { unknownKey } from "./decode-keys.ts"
import { isSensitive, maskString } from "./mask.ts"
import { SecretReference } from "./secrets.ts"

/**
 * Decodes JSON that a person wrote: a plugin's config or selector, a resource definition. Keys that the schema does not
 * name are refused. Fails with all problems at once, in words for that person; what stands at the `sensitive` paths is
 * never part of them.
 */
export const decodeConfig = <A>(
  schema: Schema.Codec<A, any>,
  input: unknown,
  sensitive: ReadonlyArray<string> = [],
): Result.Result<A, ReadonlyArray<Problem>> => {
  const place: Place = { input, sensitive, path: [], ast: schema.ast, hidden: false }
  if (takesNoKeys(schema.ast)) {
    const problems = explainEmpty(place)
    if (problems.length > 0) return Result.fail(distinct(problems))
  }
  return Result.mapError(
    Schema.decodeUnknownResult(schema)(input, { errors: "all", onExcessProperty: "error" }),
    ({ issue }) => distinct(explain(issue, place)),
  )
}

/** `Schema.Struct({})` itself takes every value but null. */
const takesNoKeys = (ast: SchemaAST.AST): boolean =>
  ast._tag === "Objects" && ast.propertySignatures.length === 0 && ast.indexSignatures.length === 0

const explainEmpty = (place: Place): ReadonlyArray<Found> => {
  const { input, ast } = place
  return typeof input === "object" && input !== null && !Array.isArray(input)
    ? Object.keys(input).map((key) => ({ path: [key], message: unknownKey(key, ast) }))
    : [{ path: [], message: mustBe(place) }]
}

/** Where the walk over an issue stands. */
interface Place {
  readonly input: unknown
  readonly sensitive: ReadonlyArray<string>
  readonly path: ReadonlyArray<string>
  /** The schema of the value at `path`; behind a pointer, of what holds it. */
  readonly ast: SchemaAST.AST
  /** A schema on the way says that the value is secret. */
  readonly hidden: boolean
}

interface Found {
  readonly path: ReadonlyArray<string>
  readonly message: string
  /** The message is the schema's own. */
  readonly own?: boolean
}

const explain = (issue: SchemaIssue.Issue, place: Place): ReadonlyArray<Found> => {
  const { path } = place
  switch (issue._tag) {
    case "Pointer":
      return explain(issue.issue, { ...place, path: [...path, ...issue.path.map(String)] })
    case "Encoding":
      return explain(issue.issue, { ...place, ast: issue.ast, hidden: place.hidden || isSecret(issue.ast) })
    case "Composite":
      return issue.issues.flatMap((inner) => explain(inner, { ...place, ast: issue.ast }))
    case "Filter":
      return explainFilter(issue, place)
    case "AnyOf":
      return explainUnion(issue, { ...place, ast: issue.ast })
    case "UnexpectedKey":
      return [{ path, message: unknownKey(path.at(-1) ?? "", issue.ast) }]
    case "MissingKey":
      return [{ path, message: missing(expectedAt(place.ast, path.at(-1) ?? "")) }]
    case "InvalidType":
      return [worded(place, issue.ast.annotations) ?? { path, message: mustBe({ ...place, ast: issue.ast }) }]
    case "InvalidValue":
      return [
        worded(place, issue.annotations) ?? { path, message: mustBe(place, annotated(issue.annotations, "expected")) },
      ]
    case "OneOf":
      return [{ path, message: `fits several forms, and must fit exactly one: ${expected(issue.ast)}` }]
    case "Forbidden":
      return [worded(place, issue.annotations) ?? { path, message: "cannot be checked" }]
  }
}

const explainFilter = (issue: SchemaIssue.Filter, place: Place): ReadonlyArray<Found> => {
  const { path } = place
  const words = worded(place, issue.filter.annotations)
  if (words !== undefined) return [words]
  if (issue.issue._tag !== "InvalidValue" || issue.issue.annotations !== undefined) return explain(issue.issue, place)
  const described = annotated(issue.filter.annotations, "expected") !== undefined
  return [{ path, message: described ? mustBe(place) : `is not accepted: ${found(place)}` }]
}

/** The problems of the member that was probably meant, the one that got furthest; else what the union accepts. */
const explainUnion = (issue: SchemaIssue.AnyOf, place: Place): ReadonlyArray<Found> => {
  const { path } = place
  const words = worded(place, issue.ast.annotations)
  if (words !== undefined) return [words]
  const tried = issue.issues.map((inner) => explain(inner, place))
  const [meant] = tried
    .filter((problems) => problems.some((problem) => problem.path.length > path.length))
    .toSorted((a, b) => a.length - b.length)
  if (meant !== undefined) return meant
  const tag = discriminator(issue.ast)
  const value = valueAt(place)
  if (tag === undefined || typeof value !== "object" || value === null || Array.isArray(value))
    return [tried.flat().find(({ own }) => own === true) ?? { path, message: mustBe(place) }]
  const at = { ...place, path: [...path, tag.key] }
  const accepted = alternatives(tag.values)
  return [{ path: at.path, message: valueAt(at) === undefined ? missing(accepted) : mustBe(at, accepted) }]
}

/** The problem in the words that a schema brings itself. */
const worded = ({ path }: Place, annotations: object | undefined): Found | undefined => {
  const message = annotated(annotations, "message")
  return message === undefined ? undefined : { path, message, own: true }
}

const missing = (accepted: string): string => `is missing; it must be ${accepted}`

const mustBe = (place: Place, accepted = expected(place.ast)): string => `must be ${accepted}, not ${found(place)}`

const expectedAt = (ast: SchemaAST.AST, key: string): string => {
  const type =
    ast._tag === "Objects"
      ? ast.propertySignatures.find(({ name }) => name === key)?.type
      : ast._tag === "Arrays"
        ? ast.elements[Number(key)]
        : undefined
  return type === undefined ? "given" : expected(type)
}

/** What the input holds, as far as it may be shown. */
const found = (place: Place): string => {
  const value = valueAt(place)
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list"
  if (value === undefined) return "missing"
  if (typeof value === "object" && value !== null) return "an object"
  if (place.hidden || isSecret(place.ast) || isSensitive(place.path, place.sensitive))
    return typeof value === "string" ? "this string (hidden)" : `this ${typeof value} (hidden)`
  if (typeof value !== "string") return String(value)
  const shown = value.includes("://") ? maskString(value) : value
  return JSON.stringify(shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown)
}

const LONGEST = 60

const valueAt = ({ input, path }: Place): unknown => {
  let value: unknown = input
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as { readonly [key: string]: unknown })[key]
  }
  return value
}

/** Whether a schema takes a secret or a reference to one: where a reference belongs, people paste the secret itself. */
const isSecret = (ast: SchemaAST.AST): boolean => {
  if (ast._tag === "Union") return ast.types.some(isSecret)
  const representation = ast.annotations?.["representation"] as { readonly id?: unknown } | undefined
  return (
    representation?.id === "effect/schema/Redacted" ||
    (ast.checks ?? []).some((check) => SecretReference.ast.checks?.includes(check) === true)
  )
}

const annotated = (annotations: object | undefined, key: "message" | "expected"): string | undefined => {
  const value = (annotations as { readonly [key: string]: unknown } | undefined)?.[key]
  return typeof value === "string" ? value : undefined
}

/** One problem for each path and message: several checks of one value describe it in the same words. */
const distinct = (problems: ReadonlyArray<Found>): ReadonlyArray<Problem> => [
  ...new Map(
    problems.map(({ path, message }) => [`${path.join("\0")}\0${message}`, { path: path.join("."), message }]),
  ).values(),
]
