import { type Code, type Compiler, type Expression, type Scope, constant } from "./expression.ts"
import { stepsOfBody } from "./limits.ts"
import { isFlexible } from "./literals.ts"
import { condition } from "./operators.ts"
import { type Node, type NodeOf, excerpt } from "./syntax.ts"
import { BOOL, type CelType, UNKNOWN, aTypeNamed, join, listOf, nameOf } from "./types.ts"
import { reader } from "./values.ts"

type List = ReadonlyArray<unknown>

/** A list literal. Its string literals take the type of its other elements or of what the list is compared with. */
export const listLiteral = (compiler: Compiler, node: NodeOf<"list">, scope: Scope, expected?: CelType): Expression => {
  const nodes = node.args
  const wanted = expected?.kind === "list" ? expected.items : UNKNOWN
  let items = wanted
  const elements = Array.from<Expression>({ length: nodes.length })
  const add = (i: number, element: Node): void => {
    const compiled = compiler.compile(element, scope, wanted.kind === "unknown" ? items : wanted)
    const joined = join(items, compiled.type)
    elements[i] = compiled
    if (joined !== null) items = joined
    else
      compiler.refuse(
        element,
        `the list holds ${nameOf(items)} here; ${excerpt(element)} is ${aTypeNamed(compiled.type)}`,
      )
  }
  nodes.forEach((element, i) => isFlexible(element) || add(i, element))
  nodes.forEach((element, i) => isFlexible(element) && add(i, element))
  const type = listOf(items)
  if (elements.every((element) => element.constant !== undefined)) {
    return constant(
      type,
      elements.map((element) => element.constant),
    )
  }
  const codes = elements.map((element) => element.code)
  return { type, code: (fields) => codes.map((code) => code(fields)) }
}

/** What the parts of a comprehension share: the list, the setter of its variable, and the price of a turn. */
interface Loop {
  readonly compiler: Compiler
  readonly list: Code<List>
  readonly set: (element: unknown) => void
  readonly steps: () => number
}

const quantifier =
  ({ compiler, list, set, steps }: Loop, body: Code<boolean>, decisive: boolean): Code<boolean> =>
  (fields) => {
    let failure: unknown
    for (const element of list(fields)) {
      compiler.budget.spend(steps())
      try {
        set(element)
        if (body(fields) === decisive) return decisive
      } catch (error) {
        compiler.budget.absorb(error)
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
    return !decisive
  }

const existsOne =
  ({ compiler, list, set, steps }: Loop, body: Code<boolean>): Code<boolean> =>
  (fields) => {
    let found = 0
    for (const element of list(fields)) {
      compiler.budget.spend(steps())
      set(element)
      if (body(fields)) found++
    }
    return found === 1
  }

const collect =
  ({ compiler, list, set, steps }: Loop, keep: Code<boolean>, result: Code): Code<List> =>
  (fields) => {
    const results: Array<unknown> = []
    for (const element of list(fields)) {
      compiler.budget.spend(steps())
      set(element)
      if (keep(fields)) results.push(result(fields))
    }
    return results
  }

const always: Code<boolean> = () => true

const COMPREHENSIONS: { readonly [name: string]: ReadonlyArray<number> } = {
  all: [2],
  exists: [2],
  exists_one: [2],
  filter: [2],
  map: [2, 3],
}

/** Whether a method is a comprehension: `list.all(x, …)`, `exists`, `exists_one`, `filter` and `map`. */
export const isComprehension = (method: string): boolean => Object.hasOwn(COMPREHENSIONS, method)

/** The names of all comprehensions. */
export const comprehensionNames: ReadonlyArray<string> = Object.keys(COMPREHENSIONS)

/** A comprehension. Its variable hides a field of the same name. */
export const comprehension = (compiler: Compiler, node: NodeOf<"rcall">, scope: Scope): Expression => {
  const [method, listNode, [variable, ...parts]] = node.args
  const { type, code: list } = compiler.compile(listNode, scope)
  if (variable?.op !== "id" || !COMPREHENSIONS[method]?.includes(1 + parts.length)) {
    return compiler.refuse(node, `${method}() takes a variable and an expression, as in list.${method}(x, x > 0)`)
  }
  if (type.kind !== "list" && type.kind !== "unknown") {
    return compiler.refuse(node, `${method}() goes through a list; ${excerpt(listNode)} is ${aTypeNamed(type)}`)
  }
  const items = type.kind === "list" ? type.items : UNKNOWN
  const read = reader(items, `an element of ${excerpt(listNode)}`)
  let current: unknown
  const inner: Scope = { name: variable.args, expression: { type: items, code: () => current }, outer: scope }
  const before = compiler.nodes()
  let price = 1
  const loop: Loop = {
    compiler,
    list: list as Code<List>,
    set: (element) => {
      current = read(element)
    },
    steps: () => price,
  }
  const test = (part: Node): Code<boolean> => condition(compiler, part, inner, `${method}()`)
  const [first, second] = parts as [Node, Node?]
  const build = (): Expression => {
    switch (method) {
      case "all":
        return { type: BOOL, code: quantifier(loop, test(first), false) }
      case "exists":
        return { type: BOOL, code: quantifier(loop, test(first), true) }
      case "exists_one":
        return { type: BOOL, code: existsOne(loop, test(first)) }
      case "filter":
        return { type: listOf(items), code: collect(loop, test(first), () => current) }
      default: {
        const keep = second === undefined ? always : test(first)
        const result = compiler.compile(second ?? first, inner)
        return { type: listOf(result.type), code: collect(loop, keep, result.code) }
      }
    }
  }
  const built = build()
  price = stepsOfBody(compiler.nodes() - before)
  return built
}
