import { Effect } from "effect"
import { type Cursor, startOf } from "../../../core/model/cursor.ts"
import { SourceUnavailable, type SourceError } from "../../../core/plugin/error.ts"
import type { Chain } from "./chain.ts"
import { type Config, readStart } from "./config.ts"
import type { Providers } from "./rpc/providers.ts"

/** Checks the chain id, and resolves `start` to the cursor before the first block that is watched. */
export const resolveStart = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  config: Config,
): Effect.fn.Return<Cursor, SourceError> {
  yield* providers.verify
  const start = readStart(config.start)
  if (start._tag === "Block") return startOf(start.number)
  const { latest } = yield* chain
    .tagged([])
    .pipe(Effect.catchTag("RpcFailure", ({ reason }) => Effect.fail(new SourceUnavailable({ reason }))))
  return startOf(Math.max(0, latest.number - start.blocks))
})
