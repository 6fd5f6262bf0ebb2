import type { Fields, FieldType, FieldValue, RecordType, ScalarKind } from "../../../core/model/fields.ts"

const scalars: ReadonlyArray<ScalarKind> = ["bool", "int", "number", "double", "string", "bytes", "address"]
const alphabet = ["a", "b", "\0", "é", "🚀", "\ud800", "\udc00"]

/** Random record types and values of them, from a seed; with many small and empty values, where encodings collide. */
export class Generator {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** mulberry32. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit)
  }

  #times<A>(limit: number, make: (index: number) => A): Array<A> {
    return Array.from({ length: this.below(limit) }, (_, index) => make(index))
  }

  text(): string {
    return this.#times(4, () => alphabet[this.below(alphabet.length)]!).join("")
  }

  bytes(): string {
    return `0x${this.#times(5, () => this.below(256).toString(16).padStart(2, "0")).join("")}`
  }

  record(depth: number): RecordType {
    const fields = Object.fromEntries(
      this.#times(5, (index) => [`${alphabet[this.below(2)]}${index}`, this.#type(depth - 1)] as const),
    )
    return { kind: "record", fields, positional: this.below(2) === 0 }
  }

  #type(depth: number): FieldType {
    const optional = this.below(4) === 0
    const choice = depth <= 0 ? 9 : this.below(10)
    if (choice < 2) return { ...this.record(depth), optional }
    if (choice < 4) return { kind: "list", items: this.#type(depth - 1), optional }
    return { kind: scalars[this.below(scalars.length)]!, optional }
  }

  fieldsOf(type: RecordType): Fields {
    return Object.fromEntries(Object.entries(type.fields).map(([name, field]) => [name, this.#value(field)]))
  }

  #value(type: FieldType): FieldValue {
    if (type.optional === true && this.below(3) === 0) return null
    switch (type.kind) {
      case "bool":
        return this.below(2) === 0
      case "int":
        return (BigInt(this.below(2 ** 30)) - 2n ** 29n) << BigInt(this.below(3) * this.below(100))
      case "number":
        return this.below(600) - 300
      case "double":
        return this.below(3) === 0 ? -0 : this.#next() * 2 ** (this.below(40) - 20)
      case "string":
      case "address":
        return this.text()
      case "bytes":
        return this.bytes()
      case "list":
        return this.#times(4, () => this.#value(type.items))
      case "record":
        return this.fieldsOf(type)
    }
  }
}
