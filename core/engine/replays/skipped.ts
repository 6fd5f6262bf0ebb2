/** Letters that a bulk replay leaves as they were, and why: each reason once. */
export class Skipped {
  count = 0
  readonly reasons = new Set<string>()

  add(reason: string, letters = 1): void {
    this.count += letters
    this.reasons.add(reason)
  }

  /** One that is no letter any more. */
  gone(): void {
    this.add("a letter is none any more: it was replayed or discarded meanwhile")
  }
}
