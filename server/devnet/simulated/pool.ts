import { createHash } from "node:crypto"
import type { TransactionSpec } from "./view.ts"

/** A transaction that waits to be mined. */
export interface PendingTransaction extends TransactionSpec {
  readonly hash: string
  readonly from: string
  readonly nonce: number
}

type Listener = (transaction: PendingTransaction) => void

/** The transactions of a chain that no block holds yet. The same calls make the same hashes. */
export class TransactionPool {
  readonly #pending = new Map<string, PendingTransaction>()
  readonly #listeners = new Set<Listener>()
  readonly #nonces = new Map<string, number>()

  /**
   * Adds a transaction, whose nonce is the sender's next one unless told. One with the nonce of another that waits takes
   * its place, as a wallet speeds up or cancels.
   */
  add(spec: TransactionSpec & { readonly from: string; readonly nonce?: number }): PendingTransaction {
    const nonce = spec.nonce ?? this.#nonces.get(spec.from) ?? 0
    this.#nonces.set(spec.from, Math.max(nonce + 1, this.#nonces.get(spec.from) ?? 0))
    const { value = 0, ...rest } = spec
    const hash = `0x${createHash("sha256")
      .update(`${JSON.stringify({ ...rest, nonce })} ${value}`)
      .digest("hex")}`
    for (const other of this.pending) if (other.from === spec.from && other.nonce === nonce) this.drop(other.hash)
    const added = { ...spec, nonce, hash }
    this.#put(added)
    return added
  }

  /** Takes one out that will never be mined; false if it does not wait. */
  drop(hash: string): boolean {
    return this.#pending.delete(hash)
  }

  /** Takes the oldest ones out, for a block. */
  take(count = Number.POSITIVE_INFINITY): ReadonlyArray<PendingTransaction> {
    const taken = this.pending.slice(0, count)
    for (const { hash } of taken) this.#pending.delete(hash)
    return taken
  }

  /** Takes back what a block held that is gone. */
  putBack(transaction: PendingTransaction): void {
    const isReplaced = this.pending.some(({ from, nonce }) => from === transaction.from && nonce === transaction.nonce)
    if (!isReplaced) this.#put(transaction)
  }

  /** What waits, oldest first. */
  get pending(): ReadonlyArray<PendingTransaction> {
    return [...this.#pending.values()]
  }

  byHash(hash: string): PendingTransaction | undefined {
    return this.#pending.get(hash)
  }

  /** Tells each transaction that comes; what is answered ends it. */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #put(transaction: PendingTransaction): void {
    this.#pending.set(transaction.hash, transaction)
    for (const listener of this.#listeners) listener(transaction)
  }
}

/** Whether a transaction of a block came from a pool. */
export const isFromPool = (transaction: TransactionSpec): transaction is PendingTransaction =>
  transaction.hash !== undefined && transaction.nonce !== undefined && transaction.from !== undefined
