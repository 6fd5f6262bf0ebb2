import { type Code, type Compiler, type Expression, type Int, type Scope, impossible } from "./expression.ts"
import { integerOfDouble, integerOfText } from "./exact-integers.ts"
import { PredicateFailure } from "./failure.ts"
import { stepsOfString } from "./limits.ts"
import { hexPart } from "./literals.ts"
import { comprehensionNames } from "./lists.ts"
import type { Node, NodeOf } from "./syntax.ts"
import { BOOL, type CelType, DOUBLE, INT, STRING, isText, nameOf } from "./types.ts"

type Kind = "bool" | "int" | "double" | "string" | "list"

/** One overload of a function; a method's receiver is its first parameter. */
interface Overload {
  readonly name: string
  readonly method: boolean
  readonly parameters: ReadonlyArray<Kind>
  readonly result: CelType
  readonly apply: (...values: ReadonlyArray<never>) => unknown
}

const functionOf = (name: string, parameter: Kind, result: CelType, apply: (value: never) => unknown): Overload => ({
  name,
  method: false,
  parameters: [parameter],
  result,
  apply,
})

const methodOf = (
  name: string,
  parameters: ReadonlyArray<Kind>,
  result: CelType,
  apply: (...values: ReadonlyArray<never>) => unknown,
): Overload => ({ name, method: true, parameters, result, apply })

const isSurrogate = (unit: number, from: number): boolean => unit >= from && unit < from + 0x400

/** The number of code points. */
const sizeOfText = (text: string): bigint => {
  let size = text.length
  for (let i = 1; i < text.length; i++) {
    if (isSurrogate(text.charCodeAt(i), 0xdc00) && isSurrogate(text.charCodeAt(i - 1), 0xd800)) size--
  }
  return BigInt(size)
}

const sizeOfList = (list: ReadonlyArray<unknown>): bigint => BigInt(list.length)

const slice = (text: string, from: Int, to: Int = text.length): string => {
  if (from >= 0 && from <= to && to <= text.length) return text.slice(Number(from), Number(to))
  throw new PredicateFailure(`substring(): ${from} to ${to} lies outside a text of ${text.length} characters`)
}

const doubleOfText = (text: string): number => {
  if (/^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i.test(text)) return Number(text)
  throw new PredicateFailure("double(): the text is no number")
}

const ascii = (pattern: RegExp, change: (part: string) => string) => (text: string) => text.replaceAll(pattern, change)

const OVERLOADS: ReadonlyArray<Overload> = [
  functionOf("size", "string", INT, sizeOfText),
  functionOf("size", "list", INT, sizeOfList),
  methodOf("size", ["string"], INT, sizeOfText),
  methodOf("size", ["list"], INT, sizeOfList),
  methodOf("startsWith", ["string", "string"], BOOL, (text: string, part: string) => text.startsWith(part)),
  methodOf("endsWith", ["string", "string"], BOOL, (text: string, part: string) => text.endsWith(part)),
  methodOf("contains", ["string", "string"], BOOL, (text: string, part: string) => text.includes(part)),
  methodOf("indexOf", ["string", "string"], INT, (text: string, part: string) => BigInt(text.indexOf(part))),
  methodOf("substring", ["string", "int"], STRING, slice),
  methodOf("substring", ["string", "int", "int"], STRING, slice),
  methodOf(
    "lowerAscii",
    ["string"],
    STRING,
    ascii(/[A-Z]+/g, (part) => part.toLowerCase()),
  ),
  methodOf(
    "upperAscii",
    ["string"],
    STRING,
    ascii(/[a-z]+/g, (part) => part.toUpperCase()),
  ),
  methodOf("trim", ["string"], STRING, (text: string) => text.trim()),
  functionOf("int", "int", INT, (value: Int) => value),
  functionOf("int", "double", INT, integerOfDouble),
  functionOf("int", "string", INT, integerOfText),
  functionOf("double", "double", DOUBLE, (value: number) => value),
  functionOf("double", "int", DOUBLE, (value: Int) => Number(value)),
  functionOf("double", "string", DOUBLE, doubleOfText),
  functionOf("string", "string", STRING, (value: string) => value),
  functionOf("string", "int", STRING, (value: Int) => `${value}`),
  functionOf("string", "double", STRING, (value: number) => `${value}`),
  functionOf("string", "bool", STRING, (value: boolean) => `${value}`),
]

const REFUSED: { readonly [name: string]: string } = {
  dyn: "dyn() would switch the type check off",
  matches: "matches() is not available; startsWith(), endsWith() and contains() search in text",
}

const signature = ({ name, method, parameters }: Overload): string => {
  const [first, ...rest] = parameters
  return method ? `${first}.${name}(${rest.join(", ")})` : `${name}(${parameters.join(", ")})`
}

const known = (): string => {
  const names = new Set(["has", ...OVERLOADS.map(({ name }) => name), ...comprehensionNames])
  return [...names].join(", ")
}

const accepts = (kind: Kind, type: CelType): boolean => kind === type.kind || (kind === "string" && isText(type))

const searchesText = (method: string): boolean =>
  OVERLOADS.some(({ name, parameters }) => name === method && parameters[1] === "string")

const call = (compiler: Compiler, overload: Overload, values: ReadonlyArray<Expression>): Code => {
  const apply = overload.apply as (...values: ReadonlyArray<unknown>) => unknown
  const [first, second, third] = values.map(({ code }) => code) as [Code, Code?, Code?]
  const { budget } = compiler
  const charged: Code = (fields) => {
    const value = first(fields)
    if (typeof value === "string") budget.spend(stepsOfString(value))
    return value
  }
  if (second === undefined) return (fields) => apply(charged(fields))
  if (third === undefined) return (fields) => apply(charged(fields), second(fields))
  return (fields) => apply(charged(fields), second(fields), third(fields))
}

/** A call of a function, `size(x)`, or of a method, `x.size()`. */
export const functionCall = (compiler: Compiler, node: NodeOf<"call" | "rcall">, scope: Scope): Expression => {
  const name = node.args[0]
  const method = node.op === "rcall"
  const nodes: ReadonlyArray<Node> = node.op === "rcall" ? [node.args[1], ...node.args[2]] : node.args[1]
  const refused = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined
  if (refused !== undefined) return compiler.refuse(node, refused)
  const named = OVERLOADS.filter((overload) => overload.name === name)
  if (named.length === 0) return compiler.refuse(node, `there is no function ${name}(); there are ${known()}`)
  const values: Array<Expression> = []
  for (const argument of nodes) {
    const inBytes = values[0]?.type.kind === "bytes" && searchesText(name)
    const isPart = inBytes && argument.op === "value" && typeof argument.args === "string"
    values.push(isPart ? hexPart(compiler, argument) : compiler.compile(argument, scope))
  }
  const types = values.map(({ type }) => type)
  if (types.some(({ kind }) => kind === "unknown")) return impossible
  const overload = named.find(
    (candidate) =>
      candidate.method === method &&
      candidate.parameters.length === types.length &&
      types.every((type, i) => accepts(candidate.parameters[i] as Kind, type)),
  )
  if (overload !== undefined) return { type: overload.result, code: call(compiler, overload, values) }
  const [receiver, ...rest] = types.map(nameOf)
  const tried = method ? `${receiver}.${name}(${rest.join(", ")})` : `${name}(${types.map(nameOf).join(", ")})`
  return compiler.refuse(node, `there is no ${tried}; there is ${named.map(signature).join(", ")}`)
}
