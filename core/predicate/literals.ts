import { type Compiler, type Expression, constant } from "./expression.ts"
import { isWithinBounds } from "./exact-integers.ts"
import { MAX_INT_BITS } from "./limits.ts"
import { type Node, type NodeOf, excerpt } from "./syntax.ts"
import { BOOL, type CelType, DOUBLE, INT, STRING } from "./types.ts"

const HEX_BYTES = /^0x(?:[0-9a-f]{2})*$/
const HEX_PART = /^(?:0x)?[0-9a-f]*$/

/** Whether a literal's type depends on what it is compared with. */
export const isFlexible = (node: Node): boolean => {
  switch (node.op) {
    case "value":
      return typeof node.args === "string"
    case "list":
      return node.args.every(isFlexible)
    case "?:":
      return isFlexible(node.args[1]) && isFlexible(node.args[2])
    default:
      return false
  }
}

const textLiteral = (compiler: Compiler, node: Node, text: string, expected: CelType | undefined): Expression => {
  switch (expected?.kind) {
    case "address": {
      const address = compiler.shape.address.parse(text)
      return address === null
        ? compiler.refuse(node, `${excerpt(node)} is no address, but it is compared with one`)
        : constant(expected, address)
    }
    case "bytes": {
      const hex = text.toLowerCase()
      return HEX_BYTES.test(hex)
        ? constant(expected, hex)
        : compiler.refuse(
            node,
            `${excerpt(node)} is compared with bytes; these are written as "0x" and two hex digits a byte`,
          )
    }
    default:
      return constant(STRING, text)
  }
}

/** A literal. */
export const literal = (compiler: Compiler, node: NodeOf<"value">, expected: CelType | undefined): Expression => {
  const value: unknown = node.args
  switch (typeof value) {
    case "boolean":
      return constant(BOOL, value)
    case "number":
      return constant(DOUBLE, value)
    case "bigint":
      return isWithinBounds(value)
        ? constant(INT, value)
        : compiler.refuse(node, `the integer ${excerpt(node)} has more than ${MAX_INT_BITS} bits`)
    case "string":
      return textLiteral(compiler, node, value, expected)
    default:
      break
  }
  if (value === null) {
    return compiler.refuse(node, "null is no value here; has(args.x) tells whether an optional field is there")
  }
  return value instanceof Uint8Array
    ? compiler.refuse(node, `${excerpt(node)} is a bytes literal; bytes are written as a 0x hex string`)
    : compiler.refuse(node, `${excerpt(node)} is unsigned; integers have no size here, write it without the u`)
}

/** A piece of hex that bytes are searched for (`startsWith("0xa9059cbb")`), in lower case as events hold it. */
export const hexPart = (compiler: Compiler, node: NodeOf<"value">): Expression => {
  const hex = String(node.args).toLowerCase()
  return HEX_PART.test(hex)
    ? constant(STRING, hex)
    : compiler.refuse(node, `${excerpt(node)} is looked for in bytes, which hold only 0x and hex digits`)
}
