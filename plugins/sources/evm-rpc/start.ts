import { Effect } from "effect"
import { type Cursor, startOf } from "../../../core/model/cursor.ts"
import { type SourceRefused, SourceUnavailable, type SourceError } from "../../../core/plugin/error.ts"
import type { Chain } from "./chain.ts"
import { type Config, readStart } from "./config.ts"
import { proveHead } from "./proven-head.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Providers } from "./rpc/providers.ts"

const isMissing = (error: RpcFailure | SourceRefused): boolean =>
  error._tag === "RpcFailure" && error.kind === "missing"

/** Checks the chain id, and resolves `start` to the cursor before the first block that is watched. */
export const resolveStart = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  config: Config,
): Effect.fn.Return<Cursor, SourceError> {
  yield* providers.verify
  const start = readStart(config.start)
  if (start._tag === "Block") return startOf(start.number)
  // The start is kept for good: a head from nowhere would leave out everything up to it.
  const { latest } = yield* chain.tagged([]).pipe(
    Effect.tap(({ latest, by }) => proveHead(chain, providers, by, latest)),
    Effect.retry({ times: providers.list.length - 1, while: isMissing }),
    Effect.catchTag("RpcFailure", ({ reason }) => Effect.fail(new SourceUnavailable({ reason }))),
  )
  return startOf(Math.max(0, latest.number - start.blocks))
})
