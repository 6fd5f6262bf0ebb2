import type { Effect } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { SourceExit } from "./source-slot.ts"

/** What a network's supervisor is told, one after another. */
export type Command =
  /** Definitions, monitors, sinks or the pause may have changed. */
  | { readonly _tag: "Refresh" }
  | { readonly _tag: "Stop" }
  /** A change of rows that no pipeline may run beside. */
  | { readonly _tag: "Between"; readonly change: Effect.Effect<void> }
  /** An invalidation was recorded. */
  | { readonly _tag: "TakeBack"; readonly from: Cursor }
  | { readonly _tag: "SourceEnded"; readonly exit: SourceExit; readonly run: number }
