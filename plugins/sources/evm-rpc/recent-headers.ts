import type { Header } from "./header.ts"

/** Headers that are remembered. */
const KEPT = 256

/** The newest headers that polls saw: what lies between one and an older one need not be asked for again. */
export class RecentHeaders {
  readonly #byNumber = new Map<number, Header>()

  put(header: Header): void {
    this.#byNumber.delete(header.number)
    this.#byNumber.set(header.number, header)
    if (this.#byNumber.size > KEPT) this.#byNumber.delete(this.#byNumber.keys().next().value!)
  }

  at(number: number): Header | undefined {
    return this.#byNumber.get(number)
  }

  /** The blocks `from` to `to` on the chain that ends in `latest`, if each is known to be the parent of the next. */
  below(latest: Header, from: number, to: number): ReadonlyArray<Header> | null {
    const found: Array<Header> = []
    let at: Header | undefined = latest
    for (;;) {
      if (at.number <= to) found.push(at)
      if (at.number <= from) return found.toReversed()
      const parent = this.#byNumber.get(at.number - 1)
      if (parent?.hash !== at.parentHash) return null
      at = parent
    }
  }
}
