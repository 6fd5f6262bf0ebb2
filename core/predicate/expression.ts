import type { EventShape, Fields } from "../model/fields.ts"
import { PredicateFailure } from "./failure.ts"
import type { Budget } from "./limits.ts"
import type { Node } from "./syntax.ts"
import { type CelType, UNKNOWN } from "./types.ts"

/** Computes an expression's value for an event. */
export type Code<A = unknown> = (fields: Fields) => A

/** An integer as it runs: a bigint, or a safe integer where the source holds one. JavaScript compares the two exactly. */
export type Int = bigint | number

/** A checked expression. `constant` holds the value of one that depends on no event. */
export interface Expression {
  readonly type: CelType
  readonly code: Code
  readonly constant?: unknown
}

/** The variables of the comprehensions around an expression, innermost first. */
export type Scope = { readonly name: string; readonly expression: Expression; readonly outer: Scope } | null

/** What the parts of the compiler share. */
export interface Compiler {
  readonly shape: EventShape
  readonly budget: Budget
  /** `expected` is the type of what a literal is compared with; it turns string literals into addresses and bytes. */
  readonly compile: (node: Node, scope: Scope, expected?: CelType) => Expression
  /** Records a problem at a node and stands in for its expression. */
  readonly refuse: (node: Node, message: string) => Expression
  /** How many nodes were compiled so far. */
  readonly nodes: () => number
}

/** An expression that depends on no event. */
export const constant = (type: CelType, value: unknown): Expression => ({ type, code: () => value, constant: value })

/** Stands in for an expression that needs a value which cannot exist (an element of `[]`). */
export const impossible: Expression = {
  type: UNKNOWN,
  code: () => {
    throw new PredicateFailure("an empty list has no elements")
  },
}
