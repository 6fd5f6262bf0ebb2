/** Random choices that a seed decides. */
export class Random {
  #state: number

  /** `stream` keeps the choices of different parts of one run apart. */
  constructor(seed: number, stream: string) {
    this.#state = hashOf(`${seed} ${stream}`)
  }

  /** A number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    return mix(this.#state) / 2 ** 32
  }

  /** An integer from `least` to `most`. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  /** True in so many of 1 cases. */
  chance(share: number): boolean {
    return this.next() < share
  }

  pick<A>(from: ReadonlyArray<A>): A {
    return from[this.between(0, from.length - 1)]!
  }

  shuffle<A>(list: ReadonlyArray<A>): Array<A> {
    const shuffled = [...list]
    for (let i = shuffled.length - 1; i > 0; i--) {
      const other = this.between(0, i)
      ;[shuffled[i], shuffled[other]] = [shuffled[other]!, shuffled[i]!]
    }
    return shuffled
  }
}

/** A number in [0, 1) that the text alone decides: for choices whose order of asking is not fixed. */
export const shareOf = (text: string): number => hashOf(text) / 2 ** 32

const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return mix(hash >>> 0)
}

const mix = (value: number): number => {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
