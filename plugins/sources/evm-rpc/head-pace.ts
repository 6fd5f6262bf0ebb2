/** Polls without a new block after which that is looked into, where nothing is known of the chain's pace. */
const STILL_POLLS = 15
/** The fewest polls without a new block after which that is looked into. */
const FEWEST_POLLS = 3
/** So many times the usual time between blocks may pass before that is looked into. */
const STILL_BLOCKS = 2.5

/** The shortest time without a new block that is told as trouble, the time where the pace is not known, and its multiple. */
const TROUBLE_MS = 60_000
const TROUBLE_UNKNOWN_MS = 300_000
const TROUBLE_BLOCKS = 10

/** How much of the pace each new block makes up. */
const WEIGHT = 0.2

/** Polls during which a provider may be behind without being left aside, told in blocks by the pace. */
const TOLERATED_POLLS = 5
/** Blocks by which providers differ all the time. */
const TOLERATED_BLOCKS = 2

/** How the head moves, as polls see it. All times are in ms. */
export class HeadPace {
  readonly #pollMs: number
  #highest = -1
  #movedAt: number
  #msPerBlock: number | null = null
  #moves = 0

  constructor(pollMs: number, now: number) {
    this.#pollMs = pollMs
    this.#movedAt = now
  }

  /** A poll found this head; whether it is higher than all before. */
  polled(head: number, now: number): boolean {
    if (head <= this.#highest) return false
    // How long the first head had been there already is not known.
    if (this.#moves > 0) {
      const each = Math.max(1, (now - this.#movedAt) / (head - this.#highest))
      this.#msPerBlock = this.#msPerBlock === null ? each : this.#msPerBlock + WEIGHT * (each - this.#msPerBlock)
    }
    this.#moves++
    this.#highest = head
    this.#movedAt = now
    return true
  }

  /** The usual time between two blocks; null as long as it is not known. */
  get msPerBlock(): number | null {
    return this.#msPerBlock
  }

  /** When the head moved last. */
  get movedAt(): number {
    return this.#movedAt
  }

  /** For how long the head has not moved. */
  stillFor(now: number): number {
    return now - this.#movedAt
  }

  /** After how long without a new block other providers are asked. */
  get suspiciousMs(): number {
    return this.#msPerBlock === null
      ? STILL_POLLS * this.#pollMs
      : Math.max(FEWEST_POLLS * this.#pollMs, STILL_BLOCKS * this.#msPerBlock)
  }

  /** After how long without a new block that is told as trouble. */
  get troubleMs(): number {
    return this.#msPerBlock === null ? TROUBLE_UNKNOWN_MS : Math.max(TROUBLE_MS, TROUBLE_BLOCKS * this.#msPerBlock)
  }

  /** By how many blocks a provider may be behind others. */
  get toleratedBlocks(): number {
    const inPolls = this.#msPerBlock === null ? 0 : Math.ceil((TOLERATED_POLLS * this.#pollMs) / this.#msPerBlock)
    return Math.max(TOLERATED_BLOCKS, inPolls)
  }
}
