import type { EventShape, Fields } from "../model/fields.ts"
import type { Problem } from "../model/problem.ts"
import { compileTree } from "./compile.ts"
import { PredicateFailure } from "./failure.ts"
import { parse } from "./syntax.ts"

export { PredicateFailure } from "./failure.ts"

/** A predicate that was accepted. */
export interface CompiledPredicate {
  /** Whether the event satisfies the predicate. Throws `PredicateFailure`. */
  readonly evaluate: (fields: Fields) => boolean
}

const failureOf = (error: unknown): PredicateFailure => {
  if (error instanceof PredicateFailure) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new PredicateFailure(`a field of the event could not be read: ${reason}`, { cause: error })
}

/**
 * Compiles a CEL predicate for the events of a selector, or answers with every problem and its line and column.
 *
 * The library parses; types are checked and code is made here, so that integers are exact, addresses are compared in
 * their canonical form, only the fields that the predicate names are read, and each evaluation ends within its bounds.
 */
export const compilePredicate = (
  source: string,
  shape: EventShape,
): CompiledPredicate | { readonly problems: ReadonlyArray<Problem> } => {
  const tree = parse(source)
  if ("problem" in tree) return { problems: [tree.problem] }
  const program = compileTree(tree, shape)
  if ("problems" in program) return program
  const { code, budget } = program
  return {
    evaluate: (fields) => {
      budget.reset()
      try {
        return code(fields)
      } catch (error) {
        throw failureOf(error)
      }
    },
  }
}
