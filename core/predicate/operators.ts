import { type Code, type Compiler, type Expression, type Int, type Scope, constant, impossible } from "./expression.ts"
import { integerArithmetic, negated } from "./exact-integers.ts"
import { LimitReached } from "./failure.ts"
import { type Budget, MAX_LIST_SUM, MAX_STRING_SUM, stepsOfList, stepsOfString } from "./limits.ts"
import { type Node, type NodeOf, excerpt, positionOf } from "./syntax.ts"
import { BOOL, type CelType, DOUBLE, INT, STRING, aTypeNamed, isText, join } from "./types.ts"

type Arithmetic = "+" | "-" | "*" | "/" | "%"

const doubleArithmetic = (op: Exclude<Arithmetic, "%">, left: Code<number>, right: Code<number>): Code<number> => {
  switch (op) {
    case "+":
      return (fields) => left(fields) + right(fields)
    case "-":
      return (fields) => left(fields) - right(fields)
    case "*":
      return (fields) => left(fields) * right(fields)
    case "/":
      return (fields) => left(fields) / right(fields)
  }
}

const joinText =
  (compiler: Compiler, left: Code<string>, right: Code<string>, where: string): Code<string> =>
  (fields) => {
    const a = left(fields)
    const b = right(fields)
    if (a.length + b.length > MAX_STRING_SUM) {
      throw new LimitReached(`+ makes a string of more than ${MAX_STRING_SUM} characters (${where})`)
    }
    const sum = a + b
    compiler.budget.spend(stepsOfString(sum))
    return sum
  }

const joinLists =
  (
    compiler: Compiler,
    left: Code<ReadonlyArray<unknown>>,
    right: Code<ReadonlyArray<unknown>>,
    where: string,
  ): Code<ReadonlyArray<unknown>> =>
  (fields) => {
    const a = left(fields)
    const b = right(fields)
    if (a.length + b.length > MAX_LIST_SUM) {
      throw new LimitReached(`+ makes a list of more than ${MAX_LIST_SUM} elements (${where})`)
    }
    const sum = a.concat(b)
    compiler.budget.spend(stepsOfList(sum))
    return sum
  }

/** `+ - * / %`. */
export const arithmetic = (compiler: Compiler, node: NodeOf<Arithmetic>, scope: Scope): Expression => {
  const { op } = node
  const left = compiler.compile(node.args[0], scope)
  const right = compiler.compile(node.args[1], scope)
  if (left.type.kind === "unknown" || right.type.kind === "unknown") return impossible
  const type = join(left.type, right.type)
  const where = positionOf(node)
  if (type?.kind === "int") {
    return { type, code: integerArithmetic(op, left.code as Code<Int>, right.code as Code<Int>, where) }
  }
  if (type?.kind === "double" && op !== "%") {
    return { type, code: doubleArithmetic(op, left.code as Code<number>, right.code as Code<number>) }
  }
  if (op === "+" && type !== null && isText(type)) {
    return { type: STRING, code: joinText(compiler, left.code as Code<string>, right.code as Code<string>, where) }
  }
  if (op === "+" && type?.kind === "list") {
    const lists = [left.code, right.code] as [Code<ReadonlyArray<unknown>>, Code<ReadonlyArray<unknown>>]
    return { type, code: joinLists(compiler, ...lists, where) }
  }
  const accepted =
    { "+": "two ints, doubles, strings or lists", "%": "two ints" }[op as string] ?? "two ints or doubles"
  return compiler.refuse(
    node,
    `${op} stands between ${aTypeNamed(left.type)} and ${aTypeNamed(right.type)}; it takes ${accepted}; ` +
      "int(x) and double(x) convert numbers",
  )
}

/** Unary minus. */
export const negation = (compiler: Compiler, node: NodeOf<"-_">, scope: Scope): Expression => {
  const operand = compiler.compile(node.args, scope)
  const value = operand.constant
  switch (operand.type.kind) {
    case "unknown":
      return impossible
    case "int":
      return typeof value === "bigint" ? constant(INT, -value) : { type: INT, code: negated(operand.code as Code<Int>) }
    case "double": {
      const code = operand.code as Code<number>
      return typeof value === "number" ? constant(DOUBLE, -value) : { type: DOUBLE, code: (fields) => -code(fields) }
    }
    default:
      return compiler.refuse(node, `- takes an int or a double; ${excerpt(node.args)} is ${aTypeNamed(operand.type)}`)
  }
}

/** The code of a condition; anything but a bool is refused. `user` says what asks for it. */
export const condition = (compiler: Compiler, node: Node, scope: Scope, user: string): Code<boolean> => {
  const { type, code } = compiler.compile(node, scope)
  if (type.kind !== "bool" && type.kind !== "unknown") {
    compiler.refuse(node, `${user} takes bools; ${excerpt(node)} is ${aTypeNamed(type)}`)
  }
  return code as Code<boolean>
}

/** `!`. */
export const not = (compiler: Compiler, node: NodeOf<"!_">, scope: Scope): Expression => {
  const operand = condition(compiler, node.args, scope, "!")
  return { type: BOOL, code: (fields) => !operand(fields) }
}

const operandsOf = (node: NodeOf<"&&" | "||">): ReadonlyArray<Node> => {
  const operands: Array<Node> = []
  let at: Node = node
  while (at.op === node.op) {
    const [left, right] = at.args as [Node, Node]
    operands.push(right)
    at = left
  }
  operands.push(at)
  return operands.toReversed()
}

const decide =
  (budget: Budget, decisive: boolean, operands: ReadonlyArray<Code<boolean>>): Code<boolean> =>
  (fields) => {
    let failure: unknown
    for (const operand of operands) {
      try {
        if (operand(fields) === decisive) return decisive
      } catch (error) {
        budget.absorb(error)
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
    return !decisive
  }

/** The same for two operands, which most predicates have, without the loop. */
const decideOfTwo =
  (budget: Budget, decisive: boolean, left: Code<boolean>, right: Code<boolean>): Code<boolean> =>
  (fields) => {
    let failure: unknown
    try {
      if (left(fields) === decisive) return decisive
    } catch (error) {
      budget.absorb(error)
      failure = error
    }
    const last = right(fields)
    if (failure !== undefined && last !== decisive) throw failure
    return last
  }

/** `&&` and `||`. An operand that fails is forgotten when another one decides. */
export const logic = (compiler: Compiler, node: NodeOf<"&&" | "||">, scope: Scope): Expression => {
  const operands = operandsOf(node).map((operand) => condition(compiler, operand, scope, node.op))
  const decisive = node.op === "||"
  const [left, right] = operands
  const code =
    operands.length === 2 && left !== undefined && right !== undefined
      ? decideOfTwo(compiler.budget, decisive, left, right)
      : decide(compiler.budget, decisive, operands)
  return { type: BOOL, code }
}

/** `condition ? a : b`. */
export const choice = (compiler: Compiler, node: NodeOf<"?:">, scope: Scope, expected?: CelType): Expression => {
  const test = condition(compiler, node.args[0], scope, "?:")
  const yes = compiler.compile(node.args[1], scope, expected)
  const no = compiler.compile(node.args[2], scope, expected ?? yes.type)
  const type = join(yes.type, no.type)
  if (type === null) {
    return compiler.refuse(
      node.args[2],
      `both results of ?: have one type; here they are ${aTypeNamed(yes.type)} and ${aTypeNamed(no.type)}`,
    )
  }
  return { type, code: (fields) => (test(fields) ? yes.code(fields) : no.code(fields)) }
}
