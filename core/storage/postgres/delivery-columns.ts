import type { Value } from "./native.ts"

interface NewDelivery {
  readonly seq: number
  readonly sink: string
  readonly pk: number
  readonly primary: number
  readonly secondary: number
  readonly state: "pending" | "offered" | "dead"
  readonly slot?: boolean
  readonly digest?: string | null
  /** Of a dead one: its place in the order of dying, the match's monitor, and why. */
  readonly dead?: { readonly died: number; readonly monitor: string; readonly reason: string }
}

/** Deliveries on their way in, a column an array. */
export class DeliveryColumns {
  readonly #rows: Array<NewDelivery> = []

  get size(): number {
    return this.#rows.length
  }

  add(row: NewDelivery): void {
    this.#rows.push(row)
  }

  /** In the order of the statements' parameters. */
  get values(): ReadonlyArray<Value> {
    const column = (of: (row: NewDelivery) => string | number | null) => this.#rows.map(of)
    return [
      column(({ seq }) => seq),
      column(({ sink }) => sink),
      column(({ pk }) => pk),
      column(({ primary }) => primary),
      column(({ secondary }) => secondary),
      column(({ state }) => state),
      column(({ slot }) => (slot === true ? 1 : 0)),
      column(({ digest }) => digest ?? null),
      column(({ dead }) => dead?.died ?? null),
      column(({ dead }) => dead?.monitor ?? null),
      column(({ dead }) => dead?.reason ?? null),
    ]
  }
}
