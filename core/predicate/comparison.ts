import { type Code, type Compiler, type Expression, type Int, type Scope, impossible } from "./expression.ts"
import { stepsOfList } from "./limits.ts"
import { isFlexible } from "./literals.ts"
import { type Node, type NodeOf, excerpt } from "./syntax.ts"
import { BOOL, type CelType, aTypeNamed, isText, join } from "./types.ts"
import { equality, reader } from "./values.ts"

type Relation = "<" | "<=" | ">" | ">="

const isNumeric = (type: CelType): boolean => type.kind === "int" || type.kind === "double"

/** A literal takes the type of what it is compared with, whichever side it is on. */
const bothSides = (compiler: Compiler, [a, b]: readonly [Node, Node], scope: Scope): [Expression, Expression] => {
  if (isFlexible(a) && !isFlexible(b)) {
    const right = compiler.compile(b, scope)
    return [compiler.compile(a, scope, right.type), right]
  }
  const left = compiler.compile(a, scope)
  return [left, compiler.compile(b, scope, left.type)]
}

const holdsRecord = (type: CelType): boolean =>
  type.kind === "record" || (type.kind === "list" && holdsRecord(type.items))

const advice = (left: CelType, right: CelType): string => {
  const has = (kind: CelType["kind"]): boolean => left.kind === kind || right.kind === kind
  if (has("address")) return "an address is compared by ==, != and in, with another address or a literal one"
  if (has("record")) return "compare its fields"
  if (has("list")) return "a list is compared with a list of the same type; x in list tells whether it holds x"
  if (has("bool")) return "a bool is compared by == and != with a bool"
  return "both sides have one type, or are numbers"
}

const refuseTypes = (compiler: Compiler, node: NodeOf<Relation | "==" | "!=">, a: CelType, b: CelType): Expression =>
  compiler.refuse(
    node,
    `${excerpt(node.args[0])} is ${aTypeNamed(a)} and ${excerpt(node.args[1])} is ${aTypeNamed(b)}: ` +
      `${node.op} cannot compare them; ${advice(a, b)}`,
  )

/** A double beyond 2^53 is rarely the integer that its text says, so it is not compared with an exact one. */
const isInexact = (integer: Expression, double: Expression): boolean =>
  integer.type.kind === "int" && typeof double.constant === "number" && Math.abs(double.constant) > 2 ** 53

const refuseInexact = (compiler: Compiler, node: Node): Expression =>
  compiler.refuse(node, `${excerpt(node)} is a double and not exact; write the integer with all its digits`)

const relation = (op: Relation, left: Code<Int>, right: Code<Int>): Code<boolean> => {
  switch (op) {
    case "<":
      return (fields) => left(fields) < right(fields)
    case "<=":
      return (fields) => left(fields) <= right(fields)
    case ">":
      return (fields) => left(fields) > right(fields)
    case ">=":
      return (fields) => left(fields) >= right(fields)
  }
}

const equal = (compiler: Compiler, type: CelType, left: Code, right: Code): Code<boolean> => {
  if (type.kind !== "list" && !isNumeric(type)) return (fields) => left(fields) === right(fields)
  const same = equality(type, compiler.budget)
  return (fields) => same(left(fields), right(fields))
}

const different = (compiler: Compiler, type: CelType, left: Code, right: Code): Code<boolean> => {
  if (type.kind !== "list" && !isNumeric(type)) return (fields) => left(fields) !== right(fields)
  const same = equality(type, compiler.budget)
  return (fields) => !same(left(fields), right(fields))
}

/** `== != < <= > >=`. An int and a double are compared by their exact values. */
export const comparison = (compiler: Compiler, node: NodeOf<Relation | "==" | "!=">, scope: Scope): Expression => {
  const [left, right] = bothSides(compiler, node.args, scope)
  if (left.type.kind === "unknown" || right.type.kind === "unknown") return { ...impossible, type: BOOL }
  if (isInexact(left, right)) return refuseInexact(compiler, node.args[1])
  if (isInexact(right, left)) return refuseInexact(compiler, node.args[0])
  const numeric = isNumeric(left.type) && isNumeric(right.type)
  const type = numeric ? left.type : join(left.type, right.type)
  if (type === null || holdsRecord(type)) return refuseTypes(compiler, node, left.type, right.type)
  if (node.op === "==") return { type: BOOL, code: equal(compiler, type, left.code, right.code) }
  if (node.op === "!=") return { type: BOOL, code: different(compiler, type, left.code, right.code) }
  if (!numeric && !isText(type)) return refuseTypes(compiler, node, left.type, right.type)
  return { type: BOOL, code: relation(node.op, left.code as Code<Int>, right.code as Code<Int>) }
}

const inConstant = (items: CelType, item: Code, list: ReadonlyArray<unknown>): Code<boolean> => {
  const set = new Set(list)
  if (items.kind !== "int") return (fields) => set.has(item(fields))
  return (fields) => set.has(BigInt(item(fields) as Int))
}

const inList = (compiler: Compiler, type: CelType, item: Code, list: Code<ReadonlyArray<unknown>>): Code<boolean> => {
  const read = reader(type, "an element of a list")
  const same = equality(type, compiler.budget)
  return (fields) => {
    const value = item(fields)
    const values = list(fields)
    compiler.budget.spend(stepsOfList(values))
    return values.some((other) => same(value, read(other)))
  }
}

/** `item in list`. */
export const membership = (compiler: Compiler, node: NodeOf<"in">, scope: Scope): Expression => {
  const [itemNode, listNode] = node.args
  let item: Expression
  let list: Expression
  if (isFlexible(itemNode) && !isFlexible(listNode)) {
    list = compiler.compile(listNode, scope)
    item = compiler.compile(itemNode, scope, list.type.kind === "list" ? list.type.items : undefined)
  } else {
    item = compiler.compile(itemNode, scope)
    list = compiler.compile(listNode, scope, { kind: "list", items: item.type })
  }
  if (list.type.kind === "unknown") return { ...impossible, type: BOOL }
  if (list.type.kind !== "list") {
    const other =
      list.type.kind === "record"
        ? "; has(record.field) tells whether a field is there"
        : "; text.contains(part) searches"
    const hint = list.type.kind === "record" || isText(list.type) ? other : ""
    return compiler.refuse(
      node,
      `in takes a list on its right; ${excerpt(listNode)} is ${aTypeNamed(list.type)}${hint}`,
    )
  }
  const type = join(item.type, list.type.items)
  if (type === null || holdsRecord(type)) {
    return compiler.refuse(
      node,
      `${excerpt(itemNode)} is ${aTypeNamed(item.type)} and ${excerpt(listNode)} holds ${aTypeNamed(list.type.items)}; ` +
        "in takes a list that holds the type of its left side",
    )
  }
  const values = list.constant
  const code =
    Array.isArray(values) && type.kind !== "list" && type.kind !== "double"
      ? inConstant(type, item.code, values)
      : inList(compiler, type, item.code, list.code as Code<ReadonlyArray<unknown>>)
  return { type: BOOL, code }
}
