import { Effect, Latch } from "effect"
import type { DeliveryRow } from "../storage/storage.ts"
import { toUnits, type Unit } from "./unit.ts"
import type { WorkItem } from "./work-item.ts"

/** Rows of one page when owed rows are read. */
const PAGE = 256

/** Rows that wait in memory; beyond it who hands over waits. */
const CAPACITY = 1024

/** Reads owed rows behind a `seq`, in order. */
export type ReadOwed<E> = (page: {
  readonly afterSeq: number
  readonly limit: number
}) => Effect.Effect<ReadonlyArray<DeliveryRow>, E>

/**
 * What a worker takes its units from, in `seq` order: owed rows that it reads from the database page by page, then what it
 * is handed. While it pulls, it is handed nothing and goes on reading: rows wait in the database, and nobody waits for it.
 */
export class Intake<E> {
  readonly #read: ReadOwed<E>
  readonly #toItem: (row: DeliveryRow) => WorkItem
  #units: Array<Unit> = []
  #rows = 0
  /** Rows that are owed again: they come first. */
  #again: Array<WorkItem> = []
  /** The last row that was read or handed over. */
  #position = 0
  /** Rows at the end of a page from a digest on, to which those of the next may belong. */
  #torn: ReadonlyArray<WorkItem> = []
  #unread: boolean
  readonly #pulls: boolean
  #ended = false
  #closed = false
  readonly #arrived = Latch.makeUnsafe(false)
  readonly #room = Latch.makeUnsafe(true)
  readonly #readBack: Latch.Latch

  /** @param rows `owed`: there are owed rows to read first; `pulled`: all are read from the database */
  constructor(read: ReadOwed<E>, rows: "handed" | "owed" | "pulled", toItem: (row: DeliveryRow) => WorkItem) {
    this.#read = read
    this.#toItem = toItem
    this.#pulls = rows === "pulled"
    this.#unread = rows !== "handed"
    this.#readBack = Latch.makeUnsafe(rows !== "owed")
  }

  /** Whether there is nothing to take, neither from memory nor, as far as is known, from the database. */
  get isEmpty(): boolean {
    return this.#rows === 0 && this.#again.length === 0 && (!this.#unread || this.#ended)
  }

  /** How many rows it takes before who hands over waits. */
  get capacity(): number {
    return CAPACITY
  }

  get pulls(): boolean {
    return this.#pulls
  }

  /** Whether nothing follows what is in memory. */
  get isEnded(): boolean {
    return this.#ended
  }

  /** Completes when what is handed over is in order behind the owed rows of before: they are read, or it pulls. */
  get readBack(): Effect.Effect<void> {
    return this.#readBack.await
  }

  /** Says, while it pulls, that there are new rows to read. */
  wake(): void {
    this.#unread = true
    this.#arrived.openUnsafe()
  }

  /** Hands over rows in `seq` order; waits while there are too many. */
  hand(items: ReadonlyArray<WorkItem>): Effect.Effect<void> {
    return this.#handUnits(toUnits(items), 0)
  }

  #handUnits(units: ReadonlyArray<Unit>, from: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#closed) return Effect.void
      let next = from
      while (next < units.length && this.#rows < CAPACITY) {
        const unit = units[next++]!
        this.#push(unit)
        this.#position = Math.max(this.#position, unit.items.at(-1)!.row.seq)
      }
      // Whoever waits for it goes on at once: not before everything is there that it can take.
      if (next > from) this.#arrived.openUnsafe()
      if (next === units.length) return Effect.void
      if (this.#rows >= CAPACITY) this.#room.closeUnsafe()
      return Effect.andThen(this.#room.await, () => this.#handUnits(units, next))
    })
  }

  /** Hands over rows from among those before that are owed again, without a wait: they are few and small. */
  handAgain(items: ReadonlyArray<WorkItem>): void {
    if (this.#closed) return
    this.#again.push(...items)
    this.#arrived.openUnsafe()
  }

  /** No row follows. */
  end(): void {
    this.#ended = true
    this.#arrived.openUnsafe()
  }

  /** Nobody takes any more: what waits stays owed, and nobody waits. */
  close(): void {
    this.#closed = true
    this.#units = []
    this.#rows = 0
    this.#again = []
    this.#room.openUnsafe()
    this.#readBack.openUnsafe()
  }

  /** Completes when there may be something to take, or nothing follows. */
  get arrival(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.isEmpty || this.#ended) return Effect.void
      this.#arrived.closeUnsafe()
      return this.#arrived.await
    })
  }

  /**
   * Reads what there is to read: a page when nothing is left in memory, as long as it pulls; as much as may wait in memory,
   * if those wait for it that hand over what follows.
   */
  fill(): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      const enough = this.#pulls ? this.#rows > 0 : this.#rows >= CAPACITY
      if (enough || !this.#unread || this.#ended) return Effect.void
      return Effect.andThen(this.#readPage, this.fill())
    })
  }

  /** Takes the units that come next, of about so many rows together; none when none is in memory. */
  take(rows: number): ReadonlyArray<Unit> {
    this.#sortAgain()
    let taken = 0
    let count = 0
    while (count < this.#units.length && taken < rows) taken += this.#units[count++]!.items.length
    this.#rows -= taken
    const units = this.#units.splice(0, count)
    if (this.#rows < CAPACITY) this.#room.openUnsafe()
    return units
  }

  #sortAgain(): void {
    if (this.#again.length === 0) return
    // One that was read between its write and its handing over is there already.
    const read = [...this.#units.flatMap(({ items }) => items), ...this.#torn]
    const known = new Set(read.map(({ row }) => row.seq))
    let again: ReadonlyArray<WorkItem> = this.#again.filter(({ row }) => !known.has(row.seq))
    this.#again = []
    if (this.#unread || this.#pulls) {
      // What lies behind the last row that was read is read in its turn.
      again = again.filter(({ row }) => row.seq <= this.#position)
      this.#unread = true
    } else this.#position = Math.max(this.#position, ...again.map(({ row }) => row.seq))
    this.#units.unshift(...toUnits(again))
    this.#rows += again.length
  }

  get #readPage(): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      // Whoever wakes it from here on may mean a row that this read does not see.
      this.#unread = false
      return Effect.map(this.#read({ afterSeq: this.#position, limit: PAGE }), (page) => {
        this.#position = Math.max(this.#position, page.at(-1)?.seq ?? 0)
        const items = [...this.#torn, ...page.map(this.#toItem)]
        const mayGoOn = page.length === PAGE
        if (mayGoOn) this.#unread = true
        const digest = mayGoOn ? page.findLast((row) => row.digest !== null)?.digest : undefined
        const whole = digest === undefined ? items.length : items.findIndex(({ row }) => row.digest === digest)
        this.#torn = items.slice(whole)
        for (const unit of toUnits(items.slice(0, whole))) this.#push(unit)
        if (!this.#unread) this.#readBack.openUnsafe()
      })
    })
  }

  #push(unit: Unit): void {
    this.#units.push(unit)
    this.#rows += unit.items.length
  }
}
