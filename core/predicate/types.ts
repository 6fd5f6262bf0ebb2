import type { FieldType, RecordType } from "../model/fields.ts"

/**
 * The type of an expression. `bytes` is a string whose values are lower-case 0x hex; `unknown` is the element of `[]`
 * and whatever was already refused, so that one mistake is one problem.
 */
export type CelType =
  | { readonly kind: "bool" | "int" | "double" | "string" | "bytes" | "address" | "unknown" }
  | { readonly kind: "list"; readonly items: CelType }
  | { readonly kind: "record"; readonly fields: RecordType["fields"] }

export const BOOL: CelType = { kind: "bool" }
export const INT: CelType = { kind: "int" }
export const DOUBLE: CelType = { kind: "double" }
export const STRING: CelType = { kind: "string" }
export const UNKNOWN: CelType = { kind: "unknown" }

export const listOf = (items: CelType): CelType => ({ kind: "list", items })

/** The type that a field has in a predicate. */
export const typeOfField = (field: FieldType): CelType => {
  switch (field.kind) {
    case "number":
      return INT
    case "list":
      return listOf(typeOfField(field.items))
    case "record":
      return { kind: "record", fields: field.fields }
    default:
      return { kind: field.kind }
  }
}

/** A type's name in messages: `int`, `list<address>`, `record`. */
export const nameOf = (type: CelType): string =>
  type.kind === "list" ? (type.items.kind === "unknown" ? "list" : `list<${nameOf(type.items)}>`) : type.kind

/** The name of a type with its article. */
export const aTypeNamed = (type: CelType): string =>
  `${type.kind === "int" || type.kind === "address" ? "an" : "a"} ${nameOf(type)}`

/** Whether strings are expected or held: `bytes` are strings in every respect but their literals. */
export const isText = (type: CelType): boolean => type.kind === "string" || type.kind === "bytes"

/** The type that holds the values of both, or null if there is none. */
export const join = (a: CelType, b: CelType): CelType | null => {
  if (b.kind === "unknown") return a
  if (a.kind === "unknown") return b
  if (a.kind === "list" && b.kind === "list") {
    const items = join(a.items, b.items)
    return items === null ? null : listOf(items)
  }
  if (a.kind === "record" && b.kind === "record") return a.fields === b.fields ? a : null
  if (a.kind === b.kind) return a
  return isText(a) && isText(b) ? STRING : null
}

/** A record's fields and their types for a message: `from (address), value (int)`. */
export const listFields = (fields: RecordType["fields"]): string =>
  Object.entries(fields)
    .map(([name, field]) => `${name} (${nameOf(typeOfField(field))})`)
    .join(", ")

/** What a whole expression is for. */
export interface Purpose {
  /** How messages name it: `the predicate`. */
  readonly name: string
  /** What to write instead of an empty one. */
  readonly instead: string
  readonly accepts: (type: CelType) => boolean
  /** What is accepted, for messages. */
  readonly accepted: string
}
