import type { Cursor } from "../../../core/model/cursor.ts"
import type { Fields, FieldType, FieldValue } from "../../../core/model/fields.ts"

/** A value as the encoding tells it: integers are bigints, positional records are lists. */
export type Node =
  | null
  | boolean
  | bigint
  | { readonly double: number }
  | { readonly string: string }
  | { readonly bytes: string }
  | { readonly address: string }
  | { readonly list: ReadonlyArray<Node> }
  | { readonly record: ReadonlyArray<readonly [string, Node]> }

/** What `decodeMatchId` should read for a value of a type. */
export const normalise = (type: FieldType, value: FieldValue): Node => {
  if (value === null) return null
  switch (type.kind) {
    case "bool":
      return value as boolean
    case "int":
    case "number":
      return BigInt(value as bigint | number)
    case "double":
      return { double: (value as number) === 0 ? 0 : (value as number) }
    case "string":
      return { string: value as string }
    case "bytes":
      return { bytes: value as string }
    case "address":
      return { address: value as string }
    case "list":
      return { list: (value as ReadonlyArray<FieldValue>).map((item) => normalise(type.items, item)) }
    case "record": {
      const entries = Object.keys(type.fields).map(
        (name) => [name, normalise(type.fields[name]!, (value as Fields)[name]!)] as const,
      )
      return type.positional === true
        ? { list: entries.map(([, node]) => node) }
        : { record: entries.toSorted(([a], [b]) => (a < b ? -1 : 1)) }
    }
  }
}

/** Reads back everything that an encoding holds; throws unless it is read to its last byte. */
export const decodeMatchId = (bytes: Uint8Array) => {
  const buffer = Buffer.from(bytes)
  let at = 0
  const take = (size: number): Buffer => {
    if (at + size > buffer.length) throw new Error("the encoding ends early")
    at += size
    return buffer.subarray(at - size, at)
  }
  const u32 = (): number => take(4).readUInt32BE()
  const sized = (): Buffer => take(u32())
  const text = (): string => (node() as { readonly string: string }).string
  const times = <A>(read: () => A): ReadonlyArray<A> => Array.from({ length: u32() }, read)
  const node = (): Node => {
    const tag = take(1)[0]!
    switch (tag) {
      case 0:
        return null
      case 1:
        return false
      case 2:
        return true
      case 3: {
        const negative = take(1)[0] === 1
        const magnitude = BigInt(`0x${sized().toString("hex") || "0"}`)
        return negative ? -magnitude : magnitude
      }
      case 4:
        return { double: take(8).readDoubleBE() }
      case 5:
        return { string: sized().toString("utf8") }
      case 6:
        return { string: sized().toString("utf16le") }
      case 7:
        return { bytes: `0x${sized().toString("hex")}` }
      case 8:
        return { address: text() }
      case 9:
        return { list: times(node) }
      case 10:
        return { record: times(() => [text(), node()] as const) }
      default:
        throw new Error(`unknown tag ${tag}`)
    }
  }
  const domain = "blockwatcher/match\0"
  if (take(domain.length).toString() !== domain) throw new Error("another domain")
  const version = take(1)[0]!
  const network = text()
  const monitor = text()
  const cursor: Cursor = { primary: Number(node()), secondary: Number(node()) }
  const index = Number(node())
  const values = times(node)
  if (at !== buffer.length) throw new Error("bytes are left")
  return { version, network, monitor, cursor, index, values }
}
