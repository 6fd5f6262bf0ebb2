import { Effect, Latch } from "effect"
import type { SubscriptionListener } from "../evm-rpc/rpc/subscription.ts"
import { readTold, type Told } from "./told.ts"

/** A transaction as it is told: 128 KiB at most where nodes have the usual limit, in hex. */
const MAX_BYTES = 2 ** 20

/** Messages of a burst, as after a block. */
const MAX_WAITING = 8192

/** Transactions that wait to be taken: while more do, nothing is heard, until the connection ends. */
const MOST = 20_000

/** Polls in a row that bring what the open connection did not tell: it is silent. */
const UNANNOUNCED = 3

/** Connections in a row that were lost until that is told as trouble. */
const SILENT_LOSSES = 3

/** What a subscription to pending transactions told, weighed against what polls find. */
export class Announced implements SubscriptionListener<Told> {
  readonly what = "pending transactions"
  readonly otherwise = "nodes are asked what is pending until it is back"
  /** Whole transactions spare a request for each; not all nodes have them. */
  readonly subscriptions = [["newPendingTransactions", true], ["newPendingTransactions"]]
  readonly maxBytes = MAX_BYTES
  readonly maxWaiting = MAX_WAITING
  readonly read = readTold
  readonly #changed = Latch.makeUnsafe(false)
  readonly #room = Latch.makeUnsafe(true)
  readonly #proven = Latch.makeUnsafe(false)
  readonly #silent = Latch.makeUnsafe(false)
  #told: Array<Told> = []
  #isOpen = false
  #isDown = false
  /** Whether it told anything since the last poll. */
  #hasTold = false
  #unannounced = 0
  #losses = 0
  #reason = ""

  get proof(): Effect.Effect<void> {
    return this.#proven.await
  }

  get silence(): Effect.Effect<void> {
    return this.#silent.await
  }

  /** Completes when there is something to take, or when the connection comes or goes. */
  get change(): Effect.Effect<void> {
    return this.#changed.await
  }

  /** Whether it is lost, or could not be opened. */
  get isDown(): boolean {
    return this.#isDown
  }

  /** Whether it tells what is pending, as far as anyone knows. */
  get isTrusted(): boolean {
    return this.#isOpen && this.#unannounced === 0
  }

  /** What is wrong with it, once it has been for a while; null if nothing is. */
  get trouble(): string | null {
    return this.#losses < SILENT_LOSSES ? null : `${this.#reason}; ${this.otherwise}`
  }

  opened(): void {
    this.#isOpen = true
    this.#isDown = false
    this.#hasTold = false
    this.#unannounced = 0
    this.#proven.closeUnsafe()
    this.#silent.closeUnsafe()
    this.#changed.openUnsafe()
  }

  closed(reason: string): void {
    this.#isOpen = false
    this.#isDown = true
    this.#reason = reason
    this.#losses++
    this.#changed.openUnsafe()
  }

  hear(told: Told): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#hasTold = true
      this.#prove()
      this.#told.push(told)
      this.#changed.openUnsafe()
      if (this.#told.length >= MOST) this.#room.closeUnsafe()
      return this.#room.await
    })
  }

  /** What was told since it was taken last. */
  take(): ReadonlyArray<Told> {
    const told = this.#told
    this.#told = []
    this.#changed.closeUnsafe()
    this.#room.openUnsafe()
    return told
  }

  /** A node was asked; whether it knew of anything that nobody had told. */
  polled(hasNews: boolean): void {
    if (!this.#isOpen) return
    if (hasNews && !this.#hasTold) {
      if (++this.#unannounced === UNANNOUNCED) this.#silent.openUnsafe()
    } else {
      this.#unannounced = 0
      this.#prove()
    }
    this.#hasTold = false
  }

  #prove(): void {
    this.#losses = 0
    this.#proven.openUnsafe()
  }
}
