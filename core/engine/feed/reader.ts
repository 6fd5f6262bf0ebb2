import { Effect } from "effect"
import type { Storage } from "../../storage/storage.ts"
import { persistently } from "../../pipeline/persistently.ts"
import type { Announcements } from "./hub.ts"
import type { LiveLog } from "./live-log.ts"

type Store = Storage["Service"]

/** Reads what is new once for all subscribers, whenever something is announced. Never ends. */
export const runReader = (
  store: Store,
  announcements: Announcements,
  log: LiveLog,
  page: number,
): Effect.Effect<never> =>
  Effect.gen(function* () {
    const changed = announcements.changed.next
    yield* readNew(store, announcements, log, page)
    yield* changed
  }).pipe(persistently("read the feed"))

/** What is announced while this runs belongs to the next round, so that no network or checkpoint is put off for ever. */
const readNew = Effect.fnUntraced(function* (store: Store, announcements: Announcements, log: LiveLog, page: number) {
  const targets = new Map(announcements.newest)
  const advances = Array.from(announcements.checkpoints.values())
  if (log.subscribers === 0) {
    log.skipTo(targets)
  } else {
    let behind = Array.from(targets).filter(([network, upTo]) => upTo > (log.read.get(network) ?? 0))
    while (behind.length > 0) {
      const further: typeof behind = []
      for (const [network, upTo] of behind) {
        const after = log.read.get(network) ?? 0
        const items = yield* store.feedPage({ network, kinds: ["match", "retracted"], after, upTo, limit: page })
        const full = items.length === page
        log.append(network, items, full ? items.at(-1)!.position : upTo)
        if (full) further.push([network, upTo])
      }
      log.changed.notify()
      behind = further
    }
  }
  let advanced = false
  for (const advance of advances) {
    if (log.checkpoints.get(advance.view.network)?.version === advance.version) continue
    log.checkpoints.set(advance.view.network, advance)
    advanced = true
  }
  if (advanced) log.changed.notify()
})

/**
 * Looks once a second for what nobody announced: other processes' writes. Checkpoints only while somebody waits for
 * them. Never ends.
 */
export const runPoller = (store: Store, announcements: Announcements, wanted: () => boolean): Effect.Effect<never> =>
  Effect.gen(function* () {
    yield* Effect.sleep("1 second")
    for (const { network, position } of yield* store.feedStates()) {
      announcements.shown(network, position)
      if (!wanted()) continue
      const pipeline = yield* store.pipeline(network)
      if (pipeline === null || pipeline.checkpoint === null) continue
      announcements.shown(network, pipeline.feedPosition)
      announcements.checkpoint({ network, cursor: pipeline.checkpoint, updatedAt: pipeline.checkpointAt })
    }
  }).pipe(persistently("look for new feed items"))
