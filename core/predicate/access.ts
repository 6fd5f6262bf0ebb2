import type { FieldType, Fields, RecordType } from "../model/fields.ts"
import { PredicateFailure } from "./failure.ts"
import { type Code, type Compiler, type Expression, type Int, type Scope, impossible } from "./expression.ts"
import { type Node, type NodeOf, excerpt, positionOf } from "./syntax.ts"
import { BOOL, type CelType, UNKNOWN, aTypeNamed, listFields, typeOfField } from "./types.ts"
import { reader } from "./values.ts"

const own = (fields: RecordType["fields"], key: string): FieldType | undefined =>
  Object.hasOwn(fields, key) ? fields[key] : undefined

const variable = (scope: Scope, key: string): Expression | undefined => {
  for (let at = scope; at !== null; at = at.outer) if (at.name === key) return at.expression
  return undefined
}

const unknownName = (compiler: Compiler, node: NodeOf<"id">): Expression => {
  const { fields } = compiler.shape.fields
  const meant = Object.entries(fields)
    .filter(([, field]) => field.kind === "record" && own(field.fields, node.args) !== undefined)
    .map(([record]) => `${record}.${node.args}`)
  const hint = meant.length === 0 ? "" : ` (did you mean ${meant.join(" or ")}?)`
  return compiler.refuse(node, `there is no field ${node.args}${hint}; the event has ${listFields(fields)}`)
}

/** A variable of a comprehension or a field of the event. */
export const nameAccess = (compiler: Compiler, node: NodeOf<"id">, scope: Scope): Expression => {
  const bound = variable(scope, node.args)
  if (bound !== undefined) return bound
  const key = node.args
  const field = own(compiler.shape.fields.fields, key)
  if (field === undefined) return unknownName(compiler, node)
  const type = typeOfField(field)
  const read = reader(type, key)
  return { type, code: (fields) => read(fields[key]) }
}

/** The two parts of `base.key` and `base["key"]`. */
const selection = (node: Node): { readonly base: Node; readonly key: string } | null => {
  if (node.op === ".") return { base: node.args[0], key: node.args[1] }
  if (node.op !== "[]") return null
  const [base, index] = node.args
  return index.op === "value" && typeof index.args === "string" ? { base, key: index.args } : null
}

/** The type of a field of a record, or null after a refusal. */
const fieldOf = (compiler: Compiler, node: Node, base: Node, type: CelType, key: string): CelType | null => {
  if (type.kind === "unknown") return null
  if (type.kind !== "record") {
    compiler.refuse(node, `${excerpt(base)} is ${aTypeNamed(type)}, which has no field ${key}`)
    return null
  }
  const field = own(type.fields, key)
  if (field !== undefined) return typeOfField(field)
  compiler.refuse(node, `${excerpt(base)} has no field ${key}; it has ${listFields(type.fields) || "no fields"}`)
  return null
}

const element = (compiler: Compiler, node: NodeOf<"[]">, scope: Scope): Expression => {
  const list = compiler.compile(node.args[0], scope)
  const index = compiler.compile(node.args[1], scope)
  if (list.type.kind === "unknown" || index.type.kind === "unknown") return impossible
  if (list.type.kind === "record") {
    return compiler.refuse(node, `a field of ${excerpt(node.args[0])} is named by a literal, as in args["name"]`)
  }
  if (list.type.kind !== "list") {
    return compiler.refuse(node, `${excerpt(node.args[0])} is ${aTypeNamed(list.type)}; only lists have elements`)
  }
  if (index.type.kind !== "int") {
    return compiler.refuse(node.args[1], `the index of a list is an int, not ${aTypeNamed(index.type)}`)
  }
  const items = list.code as Code<ReadonlyArray<unknown>>
  const at = index.code as Code<Int>
  const read = reader(list.type.items, excerpt(node))
  const where = positionOf(node)
  return {
    type: list.type.items,
    code: (fields) => {
      const values = items(fields)
      const i = Number(at(fields))
      if (i >= 0 && i < values.length) return read(values[i])
      throw new PredicateFailure(`the list has no element ${i}, its size is ${values.length} (${where})`)
    },
  }
}

/** `record.field`, `record["field"]` or `list[index]`. */
export const memberAccess = (compiler: Compiler, node: NodeOf<"." | "[]">, scope: Scope): Expression => {
  const selected = selection(node)
  if (selected === null) return element(compiler, node as NodeOf<"[]">, scope)
  const { base, key } = selected
  const record = compiler.compile(base, scope)
  const type = fieldOf(compiler, node, base, record.type, key)
  if (type === null) return impossible
  const from = record.code as Code<Fields>
  const read = reader(type, excerpt(node))
  return { type, code: (fields) => read(from(fields)[key]) }
}

type Lookup = { readonly type: CelType; readonly code: Code }

/** A path whose value is null when it, or a record on the way to it, is absent. */
const lookup = (compiler: Compiler, node: Node, scope: Scope): Lookup => {
  if (node.op === "id" && variable(scope, node.args) === undefined) {
    const { type } = compiler.compile(node, scope)
    const key = node.args
    return { type, code: (fields) => fields[key] ?? null }
  }
  const selected = selection(node)
  if (selected === null) return compiler.compile(node, scope)
  const { base, key } = selected
  const record = lookup(compiler, base, scope)
  const type = fieldOf(compiler, node, base, record.type, key)
  const from = record.code as Code<Fields | null>
  return { type: type ?? UNKNOWN, code: (fields) => from(fields)?.[key] ?? null }
}

/** `has(path)`: whether an optional field is there. False as well when a record on the way is absent. */
export const presence = (compiler: Compiler, call: Node, args: ReadonlyArray<Node>, scope: Scope): Expression => {
  const path = args[0]
  if (path === undefined || args.length > 1 || (path.op !== "id" && selection(path) === null)) {
    return compiler.refuse(call, "has() takes one field, as in has(args.value)")
  }
  const { code } = lookup(compiler, path, scope)
  return { type: BOOL, code: (fields) => code(fields) !== null }
}
