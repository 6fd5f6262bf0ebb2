import { Effect, Latch } from "effect"
import { Recent } from "./recent.ts"

/** A block as it is told that it is the newest. */
export interface ToldHead {
  readonly number: number
  readonly hash: string
}

/** Waits, in ms, before the polls that follow one which did not find an announced block: the node may be a moment late. */
const CHASE_MS = [20, 40, 80, 160, 320, 640]

/** Polls beyond those of the interval that may bring nothing until an announcement is found to be true. */
const TRUST = 16

/** New blocks in a row that polls found and nobody announced: the socket is silent, or speaks of something else. */
const UNANNOUNCED = 3

/** Announced blocks that are remembered. */
const REMEMBERED = 64

/**
 * What a WebSocket announces, weighed against what polls find. Announcements only end a wait early: what is not true of
 * them costs a few polls, then they are ignored until one of them is found by an ordinary poll.
 */
export class HeadHints {
  readonly #announced = new Recent(REMEMBERED)
  readonly #arrived = Latch.makeUnsafe(false)
  readonly #silent = Latch.makeUnsafe(false)
  readonly #proven = Latch.makeUnsafe(false)
  #isOpen = false
  #polled: ToldHead | null = null
  /** Announced, and not found yet. */
  #awaited: ToldHead | null = null
  #tries = 0
  #trust = TRUST
  #unannounced = 0
  /** The last block that was announced and found. */
  #proof = ""
  #isEarly = false
  #isUnmet = false

  /** Completes when an announcement of the present connection was found to be true. */
  get proof(): Effect.Effect<void> {
    return this.#proven.await
  }

  /** An announced block that the next poll may find; null if there is none that is worth looking for. */
  get awaited(): ToldHead | null {
    return this.#trust > 0 ? this.#awaited : null
  }

  /** Whether an announced block could not be found since the last new one. */
  get isUnmet(): boolean {
    return this.#isUnmet
  }

  /** Completes when polls find new blocks and the open connection announces none of them. */
  get silence(): Effect.Effect<void> {
    return this.#silent.await
  }

  /** A connection is open. */
  opened(): void {
    this.#isOpen = true
    this.#unannounced = 0
    this.#announced.clear()
    this.#proven.closeUnsafe()
    this.#silent.closeUnsafe()
  }

  /** It is over. */
  closed(): void {
    this.#isOpen = false
    this.#awaited = null
  }

  /** The connection tells of a new block. */
  announce(head: ToldHead): void {
    this.#announced.add(head.hash)
    const polled = this.#polled
    if (polled?.hash === head.hash) this.#prove(head.hash)
    else if (polled === null || head.number >= polled.number) {
      this.#awaited = head
      this.#tries = 0
      if (this.#trust > 0) this.#arrived.openUnsafe()
    }
  }

  /** A poll begins: it answers all that was announced before. */
  polling(): void {
    this.#arrived.closeUnsafe()
  }

  /** A poll found this block to be the newest. */
  polled(head: ToldHead): void {
    const isNew = this.#polled?.hash !== head.hash
    this.#polled = { number: head.number, hash: head.hash }
    if (isNew) this.#isUnmet = false
    if (isNew && this.#announced.has(head.hash)) this.#prove(head.hash)
    else if (isNew && this.#isOpen && ++this.#unannounced === UNANNOUNCED) this.#silent.openUnsafe()
    if (!isNew && this.#isEarly) this.#trust--
    if (this.#awaited === null) return
    if (this.#awaited.hash === head.hash || this.#awaited.number < head.number) this.#meet()
    else if (this.#isEarly && ++this.#tries > CHASE_MS.length) {
      this.#meet()
      this.#isUnmet = true
    }
  }

  /** Waits for an announcement, or so many ms; less where an announced block was looked for and is not there yet. */
  wait(ms: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const chase = this.awaited !== null ? CHASE_MS[Math.max(0, this.#tries - 1)]! : ms
      this.#isEarly = chase < ms
      const arrived = Effect.map(this.#arrived.await, () => {
        this.#isEarly = true
      })
      return Effect.raceFirst(Effect.sleep(Math.min(ms, chase)), arrived)
    })
  }

  /** Each block proves an announcement once, however often it is repeated. */
  #prove(hash: string): void {
    if (this.#proof === hash) return
    this.#proof = hash
    this.#proven.openUnsafe()
    this.#trust = TRUST
    this.#unannounced = 0
  }

  #meet(): void {
    this.#awaited = null
    this.#arrived.closeUnsafe()
  }
}
