import type { NoReplay } from "../../storage/storage.ts"
import { noReplayReasons } from "../error.ts"

/** Letters that a bulk replay leaves as they were, and why: each reason once. */
export class Skipped {
  count = 0
  readonly reasons = new Set<string>()

  add(reason: string, letters = 1): void {
    this.count += letters
    this.reasons.add(reason)
  }

  /** One that is no letter that can be sent. */
  refused(why: NoReplay | "NOT_FOUND"): void {
    this.add(
      why === "NOT_FOUND"
        ? "a letter is none any more: it was replayed or discarded meanwhile"
        : `a letter cannot be replayed: ${noReplayReasons[why]}`,
    )
  }
}
