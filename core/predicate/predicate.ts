import type { EventShape, Fields } from "../model/fields.ts"
import type { Problem } from "../model/problem.ts"
import { compileProgram, syntaxProblems } from "./program.ts"
import type { Purpose } from "./types.ts"

export { PredicateFailure } from "./failure.ts"

/** A predicate that was accepted. */
export interface CompiledPredicate {
  /** Whether the event satisfies the predicate. Throws `PredicateFailure`. */
  readonly evaluate: (fields: Fields) => boolean
}

const PURPOSE: Purpose = {
  name: "the predicate",
  instead: "write true, or leave it out, to match everything",
  accepts: ({ kind }) => kind === "bool",
  accepted: "a bool, as in args.value > 100",
}

/** What is wrong with the syntax of a predicate, whatever its events are. */
export const predicateSyntax = (source: string): ReadonlyArray<Problem> => syntaxProblems(source, PURPOSE)

/** Compiles a CEL predicate for the events of a selector, or answers with every problem and its line and column. */
export const compilePredicate = (
  source: string,
  shape: EventShape,
): CompiledPredicate | { readonly problems: ReadonlyArray<Problem> } => {
  const evaluate = compileProgram(source, shape, PURPOSE, (value) => value as boolean)
  return typeof evaluate === "function" ? { evaluate } : evaluate
}
