import type { SchemaIssue } from "effect"
import type { Problem } from "../model/problem.ts"
import { expected } from "../plugin/decode-expected.ts"

/** What is wrong with a payload: the field and the rule, never the value, which may be anything. */
export const payloadProblems = (issue: SchemaIssue.Issue, path: ReadonlyArray<string> = []): ReadonlyArray<Problem> => {
  switch (issue._tag) {
    case "Pointer":
      return payloadProblems(issue.issue, [...path, ...issue.path.map(String)])
    case "Encoding":
      return payloadProblems(issue.issue, path)
    case "Composite":
      return issue.issues.flatMap((inner) => payloadProblems(inner, path))
    case "Filter":
      return [at(path, `must be ${ruleOf(issue.filter.annotations) ?? "what a check of its schema accepts"}`)]
    case "AnyOf":
    case "InvalidType":
      return [at(path, `must be ${expected(issue.ast)}`)]
    case "OneOf":
      return [at(path, `must be exactly one of ${expected(issue.ast)}`)]
    case "InvalidValue":
      return [at(path, `must be ${ruleOf(issue.annotations) ?? "a valid value"}`)]
    case "MissingKey":
      return [at(path, "is missing")]
    case "UnexpectedKey":
      return [at(path, "is no field of the schema")]
    case "Forbidden":
      return [at(path, "cannot be checked")]
  }
}

const at = (path: ReadonlyArray<string>, message: string): Problem => ({ path: path.join("."), message })

const ruleOf = (annotations: object | undefined): string | undefined => {
  const rule = (annotations as { readonly expected?: unknown } | undefined)?.expected
  return typeof rule === "string" ? rule : undefined
}
