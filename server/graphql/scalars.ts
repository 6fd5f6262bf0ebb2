import { GraphQLError, Kind, type ValueNode } from "graphql"
import type { Json } from "../../core/model/fields.ts"
import { builder } from "./builder.ts"

const INTEGER = /^[+-]?\d+$/
/** More digits than any integer of a chain has; parsing time grows with the square of the length. */
const MAX_DIGITS = 200

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 80) ?? String(value)

const toBigInt = (value: unknown, node?: ValueNode): bigint => {
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value)
  if (typeof value === "bigint") return value
  if (typeof value === "string" && value.length <= MAX_DIGITS && INTEGER.test(value)) return BigInt(value)
  throw new GraphQLError(
    typeof value === "number" && Number.isInteger(value)
      ? `BigInt: ${value} lost digits as a JSON number; send integers above 2^53 as a string`
      : `BigInt: expected a decimal integer, as a string or a number, and got ${shown(value)}`,
    node === undefined ? {} : { nodes: node },
  )
}

builder.scalarType("BigInt", {
  description: "An integer of any size: a decimal string in results, a string or an integer as input.",
  serialize: (value) => toBigInt(value).toString(),
  parseValue: (value) => toBigInt(value),
  parseLiteral: (node) => toBigInt(node.kind === Kind.INT || node.kind === Kind.STRING ? node.value : null, node),
})

const literal = (node: ValueNode, variables: Readonly<Record<string, unknown>> | null | undefined): Json => {
  switch (node.kind) {
    case Kind.NULL:
      return null
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return node.value
    case Kind.INT:
      if (!Number.isSafeInteger(Number(node.value))) {
        throw new GraphQLError(`JSON: ${node.value} would lose digits as a JSON number; write it as a string`, {
          nodes: node,
        })
      }
      return Number(node.value)
    case Kind.FLOAT:
      return Number(node.value)
    case Kind.LIST:
      return node.values.map((item) => literal(item, variables))
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map(({ name, value }) => [name.value, literal(value, variables)]))
    case Kind.VARIABLE:
      return (variables?.[node.name.value] ?? null) as Json
  }
}

builder.scalarType("JSON", {
  description: "Any JSON value.",
  serialize: (value) => value,
  parseValue: (value) => value as Json,
  parseLiteral: (node, variables) => literal(node, variables),
})

builder.scalarType("DateTime", {
  description: "A point in time by RFC 3339, in UTC, with milliseconds: 2026-01-31T12:00:00.000Z.",
  serialize: (milliseconds) => new Date(milliseconds).toISOString(),
  parseValue: () => {
    throw new GraphQLError("DateTime is only used in results")
  },
})
