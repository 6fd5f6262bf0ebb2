import { hash } from "node:crypto"
import type { Cursor } from "./cursor.ts"
import { FieldMismatch } from "./field-mismatch.ts"
import { type EventShape, type Fields, type FieldType, type FieldValue, ofForm, type RecordType } from "./fields.ts"

/*
 * The encoding that is hashed. It is frozen: a change makes every event a new match, so it needs a new version byte.
 *
 *   "blockwatcher/match" 0x00 version(1)
 *   string network, string monitor, int primary, int secondary, int index, u32 count of identity paths, their values
 *
 * A value is its tag and a body that holds its own length; numbers of four bytes are big-endian:
 *
 *   null 00 | false 01 | true 02
 *   int, number      03, sign (0, or 1 below zero), u32 n, n bytes of magnitude (the fewest that hold it)
 *   double           04, IEEE 754, eight bytes; −0 as 0
 *   string           05, u32 n, n bytes of UTF-8
 *   string (ill-formed: lone surrogates, which UTF-8 cannot hold)  06, u32 n, n bytes of UTF-16 LE
 *   bytes            07, u32 n, n bytes
 *   address          08, then the canonical form as a string, with its tag
 *   list, positional record   09, u32 n, n values
 *   record           0a, u32 n, n times: string name, value; sorted by name in UTF-16 code units
 *
 * `int` and `number` share a tag, as lists and positional records do: the same thing can be declared either way.
 */
const VERSION = 1

const tag = {
  null: 0,
  false: 1,
  true: 2,
  int: 3,
  double: 4,
  string: 5,
  utf16: 6,
  bytes: 7,
  address: 8,
  list: 9,
  record: 10,
} as const

/** What a match's id is bound to beside the event. */
export interface MatchIdScope {
  readonly network: string
  readonly monitor: string
}

/**
 * Compiles a shape to the function that derives the id of a match, 64 hex digits: the hash of network, monitor, cursor,
 * index and the identity fields. The function throws `FieldMismatch` when an identity field does not hold what the
 * shape says; compiling throws when an identity path names no field.
 */
export const matchIdDeriver = (
  shape: EventShape,
  scope: MatchIdScope,
): ((cursor: Cursor, index: number, fields: Fields) => string) => {
  const encode = matchIdEncoder(shape, scope)
  return (cursor, index, fields) => hash("sha256", encode(cursor, index, fields), "hex")
}

/** The bytes that `matchIdDeriver` hashes. They are valid until the next call of any encoder. */
export const matchIdEncoder = (
  shape: EventShape,
  scope: MatchIdScope,
): ((cursor: Cursor, index: number, fields: Fields) => Uint8Array) => {
  const paths = shape.identity.map((path) => pathWriter(shape.fields, path))
  const out = new Output()
  out.raw(Buffer.from("blockwatcher/match\0"))
  out.byte(VERSION)
  out.string(scope.network)
  out.string(scope.monitor)
  const head = Buffer.from(out.bytes())
  return (cursor, index, fields) => {
    scratch.clear()
    scratch.raw(head)
    scratch.number(cursor.primary)
    scratch.number(cursor.secondary)
    scratch.number(index)
    scratch.u32(paths.length)
    for (const write of paths) write(scratch, fields)
    return scratch.bytes()
  }
}

/** Encoding is synchronous and leaves nothing behind, so one buffer serves all. */
class Output {
  #buffer = Buffer.allocUnsafeSlow(1024)
  #length = 0

  clear(): void {
    this.#length = 0
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value
  }

  u32(value: number): void {
    this.#reserve(4)
    this.#length = this.#buffer.writeUInt32BE(value, this.#length)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  string(text: string): void {
    const wellFormed = text.isWellFormed()
    const encoding = wellFormed ? "utf8" : "utf16le"
    this.#reserve(5 + text.length * 3)
    const start = this.#length + 5
    const size = this.#buffer.write(text, start, encoding)
    this.byte(wellFormed ? tag.string : tag.utf16)
    this.u32(size)
    this.#length = start + size
  }

  /** The same bytes as `int`, without the detour over a bigint. */
  number(value: number): void {
    let magnitude = Math.abs(value)
    let size = 0
    for (let rest = magnitude; rest > 0; rest = Math.floor(rest / 256)) size++
    this.byte(tag.int)
    this.byte(value < 0 ? 1 : 0)
    this.u32(size)
    this.#reserve(size)
    for (let at = this.#length + size - 1; at >= this.#length; at--) {
      this.#buffer[at] = magnitude % 256
      magnitude = Math.floor(magnitude / 256)
    }
    this.#length += size
  }

  int(value: bigint): void {
    const negative = value < 0n
    const hex = value === 0n ? "" : (negative ? -value : value).toString(16)
    this.byte(tag.int)
    this.byte(negative ? 1 : 0)
    this.#hex(hex.length % 2 === 0 ? hex : `0${hex}`)
  }

  double(value: number): void {
    this.#reserve(9)
    this.byte(tag.double)
    this.#length = this.#buffer.writeDoubleBE(value === 0 ? 0 : value, this.#length)
  }

  /** Writes the bytes of `0x…`; false, with half of it written, if it is no hex. */
  hexBytes(text: string): boolean {
    if (text.length % 2 !== 0 || !text.startsWith("0x")) return false
    this.byte(tag.bytes)
    return this.#hex(text.slice(2))
  }

  #hex(digits: string): boolean {
    const size = digits.length / 2
    this.u32(size)
    this.#reserve(size)
    const written = this.#buffer.write(digits, this.#length, "hex")
    this.#length += size
    return written === size
  }

  #reserve(size: number): void {
    const needed = this.#length + size
    if (needed <= this.#buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
    grown.set(this.bytes())
    this.#buffer = grown
  }
}

const scratch = new Output()

type Write = (out: Output, value: FieldValue | undefined) => void

/** Writes what stands at a dotted path; null when a record on the way is absent. */
const pathWriter = (root: RecordType, path: string): Write => {
  const names = path.split(".")
  let type: FieldType = root
  for (const name of names) {
    const next: FieldType | undefined =
      type.kind === "record" && Object.hasOwn(type.fields, name) ? type.fields[name] : undefined
    if (next === undefined) throw new Error(`the identity path '${path}' names no field of the shape ('${name}')`)
    type = next
  }
  const write = writer(type, path)
  return (out, fields) => {
    let value: FieldValue | undefined = fields
    for (const name of names) {
      if (value === null || value === undefined) return out.byte(tag.null)
      value = (value as Fields)[name]
    }
    write(out, value)
  }
}

const writer = (type: FieldType, path: string): Write => {
  const write = requiredWriter(type, path)
  if (type.optional !== true) return write
  return (out, value) => (value === null || value === undefined ? out.byte(tag.null) : write(out, value))
}

const requiredWriter = (type: FieldType, path: string): Write => {
  switch (type.kind) {
    case "list":
      return listWriter(writer(type.items, `${path}.*`), path)
    case "record":
      return recordWriter(type, path)
    case "bool":
      return (out, value) => {
        if (typeof value !== "boolean") throw new FieldMismatch(path, "bool", value)
        out.byte(value ? tag.true : tag.false)
      }
    case "int":
      return (out, value) => {
        if (typeof value !== "bigint") throw new FieldMismatch(path, "int", value)
        out.int(value)
      }
    case "number":
      return (out, value) => {
        if (!Number.isSafeInteger(value)) throw new FieldMismatch(path, "number", value)
        out.number(value as number)
      }
    case "double":
      return (out, value) => {
        if (!Number.isFinite(value)) throw new FieldMismatch(path, "double", value)
        out.double(value as number)
      }
    case "string":
      return (out, value) => {
        if (typeof value !== "string") throw new FieldMismatch(path, "string", value)
        out.string(value)
      }
    case "bytes":
      return (out, value) => {
        if (typeof value !== "string" || !out.hexBytes(value)) throw new FieldMismatch(path, "bytes", value)
      }
    case "address":
      return (out, value) => {
        if (typeof value !== "string") throw new FieldMismatch(path, "address", value)
        out.byte(tag.address)
        out.string(value)
      }
  }
}

const listWriter =
  (item: Write, path: string): Write =>
  (out, value) => {
    if (!Array.isArray(value)) throw new FieldMismatch(path, "list", value)
    out.byte(tag.list)
    out.u32(value.length)
    for (const element of value) item(out, element)
  }

const recordWriter = (type: RecordType, path: string): Write =>
  type.forms === undefined ? plainWriter(type, path) : formWriter(type.forms, path)

/** The form itself is not written: what a selector lists beside it does not change the id. */
const formWriter = (forms: NonNullable<RecordType["forms"]>, path: string): Write => {
  const writes = new Map(Object.entries(forms).map(([form, type]) => [form, plainWriter(type, path)]))
  return (out, value) => {
    if (typeof value !== "object" || value === null) throw new FieldMismatch(path, "record", value)
    const write = ofForm(writes, value)
    if (write === undefined) throw new FieldMismatch(path, "form", value)
    write(out, value)
  }
}

const plainWriter = (type: RecordType, path: string): Write => {
  const positional = type.positional === true
  const names = Object.keys(type.fields)
  if (positional) refuseLostOrder(names, path)
  else names.sort()
  const writes = names.map((name) => writer(type.fields[name]!, `${path}.${name}`))
  return (out, value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new FieldMismatch(path, "record", value)
    const fields = value as Fields
    out.byte(positional ? tag.list : tag.record)
    out.u32(names.length)
    for (let i = 0; i < names.length; i++) {
      if (!positional) out.string(names[i]!)
      writes[i]!(out, fields[names[i]!])
    }
  }
}

const isIndex = (name: string): boolean => /^(0|[1-9]\d*)$/.test(name)

/** JavaScript puts keys that are array indexes before all others, so a position among others cannot be told. */
const refuseLostOrder = (names: ReadonlyArray<string>, path: string): void => {
  const index = names.find(isIndex)
  if (index !== undefined && !names.every(isIndex))
    throw new Error(
      `the positional record '${path}' mixes the name '${index}' with others; give it a name like 'arg${index}'`,
    )
}
