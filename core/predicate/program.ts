import type { EventShape, Fields } from "../model/fields.ts"
import type { Problem } from "../model/problem.ts"
import { compileTree } from "./compile.ts"
import { PredicateFailure } from "./failure.ts"
import { parse } from "./syntax.ts"
import type { Purpose } from "./types.ts"

const failureOf = (error: unknown): PredicateFailure => {
  if (error instanceof PredicateFailure) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new PredicateFailure(`a field of the event could not be read: ${reason}`, { cause: error })
}

/** What is wrong with the syntax of an expression. */
export const syntaxProblems = (source: string, purpose: Purpose): ReadonlyArray<Problem> => {
  const tree = parse(source, purpose)
  return "problem" in tree ? [tree.problem] : []
}

/**
 * Compiles a CEL expression for the events of a selector, or answers with every problem and its line and column. Running it
 * throws `PredicateFailure`.
 *
 * The library parses; types are checked and code is made here, so that integers are exact, addresses are compared in
 * their canonical form, only the fields that the expression names are read, and each evaluation ends within its bounds.
 *
 * @param finish makes what is answered of the expression's value, whose type was accepted
 */
export const compileProgram = <A>(
  source: string,
  shape: EventShape,
  purpose: Purpose,
  finish: (value: unknown) => A,
): ((fields: Fields) => A) | { readonly problems: ReadonlyArray<Problem> } => {
  const tree = parse(source, purpose)
  if ("problem" in tree) return { problems: [tree.problem] }
  const program = compileTree(tree, shape, purpose)
  if ("problems" in program) return program
  const { code, budget } = program
  return (fields) => {
    budget.reset()
    try {
      return finish(code(fields))
    } catch (error) {
      throw failureOf(error)
    }
  }
}
