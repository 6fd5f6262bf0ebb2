/**
 * The types of the fields that a selector yields. They drive three things: the type check of predicates, the JSON of a
 * match's event, and the walk that derives a match's id.
 *
 * | kind      | value in JavaScript        | JSON                | in a predicate |
 * | --------- | -------------------------- | ------------------- | -------------- |
 * | `bool`    | boolean                    | boolean             | bool           |
 * | `int`     | bigint                     | decimal string      | int, exact     |
 * | `number`  | safe integer               | number              | int            |
 * | `double`  | number                     | number              | double         |
 * | `string`  | string                     | string              | string         |
 * | `bytes`   | lower-case 0x hex string   | the same            | string         |
 * | `address` | canonical string           | formatted by plugin | address        |
 * | `list`    | array                      | array               | list           |
 * | `record`  | object                     | object              | message        |
 */
export type FieldType =
  | { readonly kind: ScalarKind; readonly optional?: boolean }
  | { readonly kind: "list"; readonly items: FieldType; readonly optional?: boolean }
  | RecordType

export type ScalarKind = "bool" | "int" | "number" | "double" | "string" | "bytes" | "address"

/** A record; `positional` ones are hashed by position, so that a renamed argument is the same match. */
export interface RecordType {
  readonly kind: "record"
  readonly fields: { readonly [name: string]: FieldType }
  readonly positional?: boolean
  readonly optional?: boolean
  /**
   * For values that have one of several forms (the arguments of one of several events): the forms by name. A value names
   * its own by its `FORM`, and has the JSON and the hash that it would have if that form were the only one. `fields` are
   * then what predicates may read: what several forms hold in one type, optional where a form lacks it.
   */
  readonly forms?: { readonly [form: string]: RecordType }
}

/** The key under which a value names its form, for records with `forms`. */
export const FORM: unique symbol = Symbol.for("blockwatcher/form")

/** What was made for the form that a value names; undefined if there is none of that name. */
export const ofForm = <A>(forms: ReadonlyMap<string, A>, value: object): A | undefined => {
  const form = (value as { readonly [FORM]?: string })[FORM]
  return form === undefined ? undefined : forms.get(form)
}

/** A value of a field; the type says how to read it. An absent optional field is null. */
export type FieldValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | ReadonlyArray<FieldValue>
  | { readonly [name: string]: FieldValue }

export type Fields = { readonly [name: string]: FieldValue }

/** How a plugin writes and reads its addresses. The canonical form is what events hold and ids hash. */
export interface AddressFormat {
  /** The canonical form of what a person wrote, or null if it is no address. */
  readonly parse: (text: string) => string | null
  /** What is shown in JSON for a canonical address (on EVM: with its checksum). */
  readonly format: (canonical: string) => string
}

/** What a selector yields. `identity` lists the paths (`block.hash`, `args`) that make an event the one that it is. */
export interface EventShape {
  readonly fields: RecordType
  readonly identity: ReadonlyArray<string>
  readonly address: AddressFormat
}

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }
