import { Effect } from "effect"
import { compareCursors } from "../../model/cursor.ts"
import type { StorageError } from "../../storage/error.ts"
import type { Storage } from "../../storage/storage.ts"
import type { CheckpointView } from "../resources.ts"
import type { Announcements } from "./hub.ts"

type Views = readonly [CheckpointView, ...Array<CheckpointView>]

/** One reader of checkpoints: at the first pull the present ones from storage, then the newest of those that advanced. */
export const checkpointPull = (
  store: Storage["Service"],
  announcements: Announcements,
  network: string | undefined,
): Effect.Effect<Views, StorageError> => {
  const last = new Map<string, CheckpointView>()
  let started = false
  let seen = announcements.version

  const isNews = (view: CheckpointView): boolean => {
    const known = last.get(view.network)
    if (known === undefined) return true
    // The first one may have been read from storage before it was announced, and the one before it after that.
    const order = compareCursors(view.cursor, known.cursor)
    return order !== 0 && (order > 0 || view.updatedAt >= known.updatedAt)
  }

  const advanced = (): ReadonlyArray<CheckpointView> => {
    const after = seen
    seen = announcements.version
    return Array.from(announcements.checkpoints.values())
      .filter(({ view, version }) => version > after && (network === undefined || view.network === network))
      .map(({ view }) => view)
  }

  return Effect.gen(function* () {
    while (true) {
      const changed = announcements.changed.next
      const views = (started ? advanced() : yield* presentCheckpoints(store, network)).filter(isNews)
      started = true
      for (const view of views) last.set(view.network, view)
      const [first, ...rest] = views
      if (first !== undefined) return [first, ...rest] as const
      yield* changed
    }
  })
}

const presentCheckpoints = Effect.fnUntraced(function* (store: Storage["Service"], network: string | undefined) {
  const networks = network === undefined ? (yield* store.feedStates()).map((state) => state.network) : [network]
  const views: Array<CheckpointView> = []
  for (const id of networks) {
    const pipeline = yield* store.pipeline(id)
    if (pipeline === null || pipeline.checkpoint === null) continue
    views.push({ network: id, cursor: pipeline.checkpoint, updatedAt: pipeline.checkpointAt })
  }
  return views
})
