import type { Code } from "../store/deliveries.ts"

/**
 * What ends a run whatever the action makes of it: the delivery rests with a code, the run was overtaken by a later one, or
 * the database does not take what has to be recorded.
 */
export type Verdict =
  | { readonly kind: "park"; readonly code: Code; readonly reason: string; readonly reader: number | null }
  | { readonly kind: "overtaken" }
  | { readonly kind: "unstored"; readonly reason: string }

/** Stops an action that can do nothing more; what it makes of this does not count. */
export class RunStopped extends Error {
  override readonly name = "RunStopped"
}
