import type { EventShape } from "../model/fields.ts"
import type { Problem } from "../model/problem.ts"
import { memberAccess, nameAccess, presence } from "./access.ts"
import { comparison, membership } from "./comparison.ts"
import { type Code, type Compiler, type Expression, type Scope, impossible } from "./expression.ts"
import { functionCall } from "./functions.ts"
import { Budget, MAX_TREE_DEPTH } from "./limits.ts"
import { comprehension, isComprehension, listLiteral } from "./lists.ts"
import { literal } from "./literals.ts"
import { arithmetic, choice, logic, negation, not } from "./operators.ts"
import { type Node, problemAt } from "./syntax.ts"
import { type CelType, type Purpose, aTypeNamed } from "./types.ts"

/** A checked expression that is ready to run; `budget` is to be reset before each run. */
export interface Program {
  readonly code: Code
  readonly budget: Budget
}

const expressionOf = (compiler: Compiler, node: Node, scope: Scope, expected: CelType | undefined): Expression => {
  switch (node.op) {
    case "value":
      return literal(compiler, node, expected)
    case "id":
      return nameAccess(compiler, node, scope)
    case ".":
    case "[]":
      return memberAccess(compiler, node, scope)
    case "call":
      return node.args[0] === "has"
        ? presence(compiler, node, node.args[1], scope)
        : functionCall(compiler, node, scope)
    case "rcall":
      return isComprehension(node.args[0]) ? comprehension(compiler, node, scope) : functionCall(compiler, node, scope)
    case "list":
      return listLiteral(compiler, node, scope, expected)
    case "?:":
      return choice(compiler, node, scope, expected)
    case "&&":
    case "||":
      return logic(compiler, node, scope)
    case "!_":
      return not(compiler, node, scope)
    case "-_":
      return negation(compiler, node, scope)
    case "+":
    case "-":
    case "*":
    case "/":
    case "%":
      return arithmetic(compiler, node, scope)
    case "in":
      return membership(compiler, node, scope)
    case "==":
    case "!=":
    case "<":
    case "<=":
    case ">":
    case ">=":
      return comparison(compiler, node, scope)
    default:
      return compiler.refuse(node, "there are no maps and no optional access here")
  }
}

/** Checks a tree against the fields of an event; answers with code or with every problem, in their order. */
export const compileTree = (
  root: Node,
  shape: EventShape,
  { name, accepts, accepted }: Purpose,
): Program | { readonly problems: ReadonlyArray<Problem> } => {
  const found: Array<{ readonly offset: number; readonly message: string }> = []
  let nodes = 0
  let depth = 0
  let tooDeep = false
  const compiler: Compiler = {
    shape,
    budget: new Budget(),
    nodes: () => nodes,
    refuse: (node, message) => {
      found.push({ offset: node.pos, message })
      return impossible
    },
    compile: (node, scope, expected) => {
      nodes++
      if (depth === MAX_TREE_DEPTH) {
        if (!tooDeep) compiler.refuse(node, `it is nested deeper than ${MAX_TREE_DEPTH} operators`)
        tooDeep = true
        return impossible
      }
      depth++
      const expression = expressionOf(compiler, node, scope, expected)
      depth--
      return expression
    },
  }
  const { type, code } = compiler.compile(root, null)
  if (type.kind !== "unknown" && !accepts(type)) {
    compiler.refuse(root, `${name} is ${aTypeNamed(type)}; it must be ${accepted}`)
  }
  if (found.length === 0) return { code, budget: compiler.budget }
  const inOrder = found.toSorted((a, b) => a.offset - b.offset)
  return { problems: inOrder.map(({ offset, message }) => problemAt(root.input, offset, message)) }
}
