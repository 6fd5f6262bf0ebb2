import { Effect } from "effect"
import { untilStored } from "../pipeline/persist.ts"
import type { PipelineFault } from "../pipeline/pipeline.ts"
import type { PipelineStatus } from "../pipeline/status.ts"
import type { EventTerms } from "../storage/events.ts"
import type { Owner, Storage } from "../storage/storage.ts"

/** Rows of one transaction: keeps it to about 5 ms. */
const STEP = 256

/** Makes events of what was stored for a network's actions while no program with actions ran. */
export const emitOwed = (
  storage: Storage["Service"],
  owner: Owner,
  events: EventTerms,
  status: PipelineStatus,
): Effect.Effect<void, PipelineFault> =>
  storage.emitOwed(owner, events, STEP).pipe(
    untilStored(status),
    Effect.flatMap((rows) =>
      rows < STEP ? Effect.void : Effect.andThen(Effect.yieldNow, emitOwed(storage, owner, events, status)),
    ),
  )
