import type { MethodAnswer } from "./methods.ts"
import type { TransactionPool } from "./pool.ts"

/** A filter that nobody asks is forgotten when so many newer ones exist. */
const MAX_FILTERS = 100

/** The filters of a node for pending transactions: each answers the hashes that came since it was asked last. */
export class PendingFilters {
  readonly #fresh = new Map<string, Array<string>>()
  readonly #unwatch: () => void
  #next = 1

  constructor(pool: TransactionPool) {
    this.#unwatch = pool.watch(({ hash }) => {
      for (const hashes of this.#fresh.values()) hashes.push(hash)
    })
  }

  /** Undefined for what concerns no filter. */
  answer(method: string, [id]: ReadonlyArray<unknown>): MethodAnswer | undefined {
    if (method === "eth_newPendingTransactionFilter") return { result: this.#add() }
    if (method === "eth_uninstallFilter") return { result: this.#fresh.delete(String(id)) }
    if (method !== "eth_getFilterChanges") return undefined
    const hashes = this.#fresh.get(String(id))
    return hashes === undefined
      ? { error: { code: -32000, message: "filter not found" } }
      : { result: hashes.splice(0, hashes.length) }
  }

  clear(): void {
    this.#fresh.clear()
  }

  close(): void {
    this.clear()
    this.#unwatch()
  }

  #add(): string {
    const id = `0x${(this.#next++).toString(16)}`
    this.#fresh.set(id, [])
    if (this.#fresh.size > MAX_FILTERS) this.#fresh.delete(this.#fresh.keys().next().value!)
    return id
  }
}
