import type { Cursor } from "../model/cursor.ts"

/** One registered position and how many deliveries of it are still open. Complete it through the tracker only. */
export interface Slot {
  readonly cursor: Cursor
  open: number
}

/**
 * Decides how far the checkpoint may move: up to the cursor of the longest run of finished slots from the front.
 *
 * Slots stand in the order in which they began. A slot whose deliveries never complete holds everything behind it back
 * for good, which is what makes a lost worker harmless: the checkpoint stalls, visibly, and never passes a loss.
 */
export class ProgressTracker {
  #slots: Array<Slot> = []
  #front = 0
  #openSlots = 0
  #watermark: Cursor | null = null

  /** Registers a position with its number of open deliveries; 0 is finished at once. Answers its slot. */
  begin(cursor: Cursor, open: number): Slot {
    const slot = { cursor, open }
    this.#slots.push(slot)
    if (open > 0) this.#openSlots++
    this.#advance()
    return slot
  }

  /** Counts one delivery of the slot as finished. */
  complete(slot: Slot): void {
    if (slot.open === 0) return
    slot.open--
    if (slot.open > 0) return
    this.#openSlots--
    this.#advance()
  }

  /** The cursor up to which everything is finished, or null when nothing is yet. */
  get watermark(): Cursor | null {
    return this.#watermark
  }

  /** Positions with open deliveries. */
  get inFlight(): number {
    return this.#openSlots
  }

  #advance(): void {
    const slots = this.#slots
    let front = this.#front
    while (front < slots.length && slots[front]!.open === 0) front++
    if (front === this.#front) return
    this.#watermark = slots[front - 1]!.cursor
    // The finished prefix is dropped in large pieces, so that a long run costs amortised constant time a slot.
    if (front === slots.length) {
      this.#slots = []
      this.#front = 0
    } else if (front > 1024 && front * 2 > slots.length) {
      this.#slots = slots.slice(front)
      this.#front = 0
    } else {
      this.#front = front
    }
  }
}
