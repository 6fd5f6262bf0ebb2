import type { Value } from "./native.ts"

/** Deliveries on their way in, a column an array. */
export class DeliveryColumns {
  readonly #seq: Array<number> = []
  readonly #sink: Array<string> = []
  readonly #pk: Array<number> = []
  readonly #primary: Array<number> = []
  readonly #secondary: Array<number> = []
  readonly #state: Array<string> = []
  readonly #died: Array<number | null> = []
  readonly #reason: Array<string | null> = []

  get size(): number {
    return this.#seq.length
  }

  add(row: {
    readonly seq: number
    readonly sink: string
    readonly pk: number
    readonly primary: number
    readonly secondary: number
    readonly state: "pending" | "offered" | "dead"
    readonly died?: number
    readonly reason?: string
  }): void {
    this.#seq.push(row.seq)
    this.#sink.push(row.sink)
    this.#pk.push(row.pk)
    this.#primary.push(row.primary)
    this.#secondary.push(row.secondary)
    this.#state.push(row.state)
    this.#died.push(row.died ?? null)
    this.#reason.push(row.reason ?? null)
  }

  /** In the order of the statements' parameters. */
  get values(): ReadonlyArray<Value> {
    return [this.#seq, this.#sink, this.#pk, this.#primary, this.#secondary, this.#state, this.#died, this.#reason]
  }
}
