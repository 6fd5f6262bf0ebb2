/** Remembers the newest of the keys that it was given: nodes tell of a block or a transaction more than once. */
export class Recent {
  readonly #keys = new Set<string>()
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(key: string): void {
    this.#keys.delete(key)
    this.#keys.add(key)
    if (this.#keys.size > this.#most) this.#keys.delete(this.#keys.values().next().value!)
  }

  clear(): void {
    this.#keys.clear()
  }
}
