import type { Received } from "./receiver.ts"

/** A span as a collector gets it. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Null of a root. */
  readonly parentSpanId: string | null
  readonly name: string
  readonly attributes: Readonly<Record<string, string | number>>
  readonly failed: boolean
  /** Ids of the spans that it is linked to. */
  readonly links: ReadonlyArray<string>
  /** What the sender says of itself. */
  readonly resource: Readonly<Record<string, string | number>>
}

type Fields = ReadonlyMap<number, ReadonlyArray<number | bigint | Buffer>>

/** The fields of a protobuf message, by their numbers. */
const fieldsOf = (bytes: Buffer): Fields => {
  const fields = new Map<number, Array<number | bigint | Buffer>>()
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const read = (wire: number): number | bigint | Buffer => {
    if (wire === 0) return varint()
    if (wire === 1) return bytes.readBigUInt64LE((at += 8) - 8)
    if (wire === 5) return bytes.readUInt32LE((at += 4) - 4)
    const length = Number(varint())
    return bytes.subarray(at, (at += length))
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const values = fields.get(tag >> 3) ?? []
    values.push(read(tag & 7))
    fields.set(tag >> 3, values)
  }
  return fields
}

const messages = (fields: Fields, number: number): ReadonlyArray<Fields> =>
  (fields.get(number) ?? []).map((value) => fieldsOf(value as Buffer))
const bytes = (fields: Fields, number: number): Buffer => (fields.get(number)?.[0] ?? Buffer.alloc(0)) as Buffer
const text = (fields: Fields, number: number): string => bytes(fields, number).toString()
const hex = (fields: Fields, number: number): string => bytes(fields, number).toString("hex")

const attributesOf = (fields: Fields, number: number): Readonly<Record<string, string | number>> =>
  Object.fromEntries(
    messages(fields, number).map((pair) => {
      const [value] = messages(pair, 2)
      const [integer] = value!.get(3) ?? []
      return [text(pair, 1), integer === undefined ? text(value!, 1) : Number(integer)]
    }),
  )

/** The spans of export requests, as opentelemetry-proto's TracesData has them. */
export const spansOf = (requests: ReadonlyArray<Received>): ReadonlyArray<ReceivedSpan> =>
  requests.flatMap(({ body }) =>
    messages(fieldsOf(body), 1).flatMap((resourceSpans) => {
      const resource = attributesOf(messages(resourceSpans, 1)[0]!, 1)
      return messages(resourceSpans, 2).flatMap((scopeSpans) =>
        messages(scopeSpans, 2).map((span) => ({
          traceId: hex(span, 1),
          spanId: hex(span, 2),
          parentSpanId: hex(span, 4) || null,
          name: text(span, 5),
          attributes: attributesOf(span, 9),
          failed: messages(span, 15).some((status) => status.get(3)?.[0] === 2n),
          links: messages(span, 13).map((link) => hex(link, 2)),
          resource,
        })),
      )
    }),
  )
