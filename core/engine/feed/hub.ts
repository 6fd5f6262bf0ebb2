import { Context, Effect, Layer } from "effect"
import { compareCursors } from "../../model/cursor.ts"
import type { CheckpointView } from "../resources.ts"
import { Signal } from "./signal.ts"

/** A checkpoint, and how far the feed of its network must have been read before it may be shown. */
export interface Advance {
  readonly view: CheckpointView
  readonly after: number
  /** Grows with every advance of any network. */
  readonly version: number
}

/** The newest that is known of each network's feed and checkpoint. */
export class Announcements {
  readonly newest = new Map<string, number>()
  readonly checkpoints = new Map<string, Advance>()
  readonly changed = new Signal()
  #version = 0

  /** The version of the last advance. */
  get version(): number {
    return this.#version
  }

  shown(network: string, position: number): void {
    const known = this.newest.get(network)
    if (known !== undefined && position <= known) return
    this.newest.set(network, position)
    this.changed.notify()
  }

  /** Takes a checkpoint, unless it is the known one or an earlier one that was overtaken on its way here. */
  checkpoint(view: CheckpointView): void {
    const known = this.checkpoints.get(view.network)?.view
    if (known !== undefined) {
      const order = compareCursors(view.cursor, known.cursor)
      if (order === 0 || (order < 0 && view.updatedAt < known.updatedAt)) return
    }
    this.#version++
    this.checkpoints.set(view.network, { view, after: this.newest.get(view.network) ?? 0, version: this.#version })
    this.changed.notify()
  }
}

/**
 * Where the pipeline says that there is something new for the feed's readers. It never waits for a reader, and a call
 * that is missing costs only time: the feed looks for itself once a second.
 */
export class FeedHub extends Context.Service<
  FeedHub,
  {
    /**
     * After a commit that wrote feed items: the network's newest position. Also once after a claim, with the position
     * that the pipeline's row has.
     */
    readonly shown: (network: string, position: number) => Effect.Effect<void>
    /** After a checkpoint was written; where one commit wrote both, after `shown`. */
    readonly checkpoint: (view: CheckpointView) => Effect.Effect<void>
    /** For the feed. */
    readonly announcements: Announcements
  }
>()("blockwatcher/FeedHub") {
  static readonly layer = Layer.sync(FeedHub, () => {
    const announcements = new Announcements()
    return {
      shown: (network, position) => Effect.sync(() => announcements.shown(network, position)),
      checkpoint: (view) => Effect.sync(() => announcements.checkpoint(view)),
      announcements,
    }
  })
}
