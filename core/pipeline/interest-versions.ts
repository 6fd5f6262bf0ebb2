import { type Effect, Semaphore } from "effect"
import type { InterestSet } from "../plugin/source.ts"
import type { CompiledMonitor } from "./matcher.ts"

/** A compiled monitor with the selector that its source works with. */
export interface ActiveMonitor {
  readonly compiled: CompiledMonitor
  readonly selector: unknown
}

/**
 * The versions of a network's interests. A batch is matched by the monitors of the version that it was fetched for, so
 * that an edit needs no drain and a range already fetched belongs to the monitors of its time.
 */
export class InterestVersions {
  #current: InterestSet<unknown> = { version: 0, interests: [] }
  readonly #recording = Semaphore.makeUnsafe(1)
  readonly #compiled = new Map<number, ReadonlyMap<string, CompiledMonitor>>([[0, new Map()]])

  get current(): InterestSet<unknown> {
    return this.#current
  }

  /**
   * Runs what records where monitors took effect, or lets one begin anew, without another one in between: what is recorded is
   * never that of a time before it was switched off.
   */
  recording<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.#recording.withPermits(1)(work)
  }

  replace(monitors: ReadonlyArray<ActiveMonitor>): void {
    const version = this.#current.version + 1
    this.#current = {
      version,
      interests: monitors.map(({ compiled, selector }) => ({ id: compiled.id, selector })),
    }
    this.#compiled.set(version, new Map(monitors.map(({ compiled }) => [compiled.id, compiled])))
  }

  /** The monitors of a version. Batches come in the order of their versions, so older ones are forgotten. */
  take(version: number): ReadonlyMap<string, CompiledMonitor> {
    const monitors = this.#compiled.get(version)
    if (monitors === undefined)
      throw new Error(`the source emitted a batch of the unknown interests version ${version}`)
    for (const older of this.#compiled.keys()) if (older < version) this.#compiled.delete(older)
    return monitors
  }

  /** The monitors of a version or, if it is forgotten, of the oldest one kept: for finds behind the feed's position. */
  peek(version: number): ReadonlyMap<string, CompiledMonitor> {
    return this.#compiled.get(version) ?? this.#compiled.get(Math.min(...this.#compiled.keys())) ?? new Map()
  }
}
