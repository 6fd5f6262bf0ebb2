import { Deferred, Effect } from "effect"
import type { Life } from "./life.ts"

/** What happens when a runtime passes a point for the n-th time: `<step>:before` or `<step>:after`. */
export interface Trigger {
  readonly point: string
  readonly passing: number
}

interface Armed extends Trigger {
  left: number
  readonly fired: Deferred.Deferred<Life>
  /** Runs at once, in the step that passes the point. */
  readonly action: (life: Life) => void
}

/** Where things happen to runtimes. */
export class Points {
  #armed: Armed | null = null
  /** How often each was passed: what a schedule can count on. */
  readonly counts = new Map<string, number>()

  arm(trigger: Trigger, action: (life: Life) => void): Deferred.Deferred<Life> {
    const fired = Deferred.makeUnsafe<Life>()
    this.#armed = { ...trigger, left: trigger.passing, fired, action }
    return fired
  }

  disarm(): void {
    this.#armed = null
  }

  pass(point: string, life: Life): void {
    this.counts.set(point, (this.counts.get(point) ?? 0) + 1)
    const armed = this.#armed
    if (armed === null || armed.point !== point || --armed.left > 0) return
    this.#armed = null
    armed.action(life)
    Deferred.doneUnsafe(armed.fired, Effect.succeed(life))
  }
}
