import { Effect } from "effect"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Owner, PruneInput, Storage } from "../storage/storage.ts"

/** Rows that one pruning transaction may touch, which keeps it to a few ms. */
const PRUNE_ROWS = 500

/** Removes what the journal, the feed and actions need no longer, every ten seconds, in small transactions. */
export const maintain = (
  storage: Storage["Service"],
  owner: Owner,
  /** As it is at the time. */
  kept: () => Omit<PruneInput, "limit">,
): Effect.Effect<void> => {
  const pruneAll: Effect.Effect<void, StorageError | NotOwner> = Effect.suspend(() =>
    storage.prune(owner, { ...kept(), limit: PRUNE_ROWS }),
  ).pipe(Effect.flatMap((more) => (more ? Effect.andThen(Effect.yieldNow, pruneAll) : Effect.void)))
  return Effect.sleep("10 seconds").pipe(
    Effect.andThen(Effect.suspend(() => pruneAll)),
    Effect.catchTag("StorageError", (error) => Effect.logWarning(`pruning waits: ${error.message}`)),
    Effect.catchDefect((defect) => Effect.logError("pruning broke; it is tried again", defect)),
    Effect.forever,
    // The pipeline's own writes meet the same refusal and end the run.
    Effect.catchTag("NotOwner", () => Effect.void),
  )
}
