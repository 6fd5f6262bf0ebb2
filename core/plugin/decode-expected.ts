import type { SchemaAST } from "effect"

/** Says in words what a schema accepts: `an integer between 1 and 100`, `"safe" or "finalized"`. */
export const expected = (ast: SchemaAST.AST): string => {
  const own = ast.annotations?.["expected"] ?? ast.annotations?.["description"]
  const noun = typeof own === "string" ? own : nounOf(ast)
  return (ast.checks ?? []).flatMap(flatten).reduce(narrow, noun)
}

const nounOf = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "String":
      return "a string"
    case "Number":
      return "a number"
    case "Boolean":
      return "true or false"
    case "Null":
      return "null"
    case "Literal":
      return typeof ast.literal === "bigint" ? `${ast.literal}` : JSON.stringify(ast.literal)
    case "Enum":
      return alternatives(ast.enums.map(([, value]) => JSON.stringify(value)))
    case "Union":
      return unionExpected(ast)
    case "Arrays":
      return "a list"
    case "Objects":
      return "an object"
    case "Suspend":
      return expected(ast.thunk())
    case "Declaration":
      return ast.encoding === undefined ? "a valid value" : expected(ast.encoding.at(-1)!.to)
    default:
      return "a valid value"
  }
}

const flatten = (check: SchemaAST.Check<any>): ReadonlyArray<SchemaAST.Check<any>> =>
  typeof check.annotations?.["expected"] === "string" || check._tag === "Filter"
    ? [check]
    : check.checks.flatMap(flatten)

/** Puts what a check adds behind the noun, or takes its words instead of the noun where they stand alone. */
const narrow = (text: string, check: SchemaAST.Check<any>): string => {
  const words = check.annotations?.["expected"]
  if (typeof words !== "string" || words === "a finite number") return text
  if (words === "a value with a length of at least 1")
    return text === "a string" ? "a string that is not empty" : `${text} of at least one entry`
  return words.startsWith("a value ") ? `${text} ${words.slice("a value ".length)}` : words
}

const unionExpected = (ast: SchemaAST.Union): string => {
  const tag = discriminator(ast)
  return tag === undefined
    ? alternatives([...new Set(members(ast).map(expected))])
    : `an object whose ${tag.key} is ${alternatives(tag.values)}`
}

/** The types of a union and of the plain unions in it; absence is no alternative to write. */
const members = (ast: SchemaAST.Union): ReadonlyArray<SchemaAST.AST> =>
  ast.types
    .filter(({ _tag }) => _tag !== "Undefined")
    .flatMap((type) =>
      type._tag === "Union" && discriminator(type) === undefined && type.checks === undefined ? members(type) : [type],
    )

/** The key by which the members of a union of objects differ, and what it may hold (as JSON). */
export const discriminator = (
  ast: SchemaAST.Union,
): { readonly key: string; readonly values: ReadonlyArray<string> } | undefined => {
  const signatures = ast.types.map((type) => (type._tag === "Objects" ? type.propertySignatures : []))
  for (const { name: key } of signatures[0] ?? []) {
    const values = signatures.map((fields) => {
      const type = fields.find(({ name }) => name === key)?.type
      return type?._tag === "Literal" ? nounOf(type) : undefined
    })
    if (typeof key === "string" && values.every((value) => value !== undefined)) return { key, values }
  }
  return undefined
}

/** `a`, `a or b`, `a, b or c`. */
export const alternatives = (texts: ReadonlyArray<string>): string =>
  texts.length < 2 ? (texts[0] ?? "nothing") : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1)}`
