import { Effect, Exit } from "effect"
import { stillStanding } from "../retracting.ts"
import type { StorageError } from "../error.ts"
import type { Rewound } from "../storage.ts"
import type { QueryFailed } from "./error.ts"
import { cutGates } from "./cut-gates.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"
import { readInvalidation } from "./taking-back.ts"

/** The last step of taking back. */
export const rewind = Effect.fnUntraced(function* (
  group: Group,
  journalDepth: number,
  now: number,
): Effect.fn.Return<Exit.Exit<Rewound, StorageError>, QueryFailed> {
  const { session, network } = group
  const recorded = yield* readInvalidation(session, network.id)
  if (recorded === null) return Exit.succeed({ to: network.minted, moved: false, gap: null })
  if (!recorded.retracted) return Exit.fail(stillStanding(network.id))
  const { from } = recorded
  const { target, ...rewound } = network.rewind(from, journalDepth, now)
  yield* session.run(sql.deleteAnchorsBehind, [network.id, from.primary])
  yield* session.run(sql.deleteRecordsBehind, [network.id, from.primary, from.secondary])
  yield* session.run(sql.lowerEffective, [network.id, target.primary, target.secondary])
  // The steps left but what was found late since.
  yield* cutGates(group, from, Number.MAX_SAFE_INTEGER)
  yield* session.run(sql.deleteInvalidation, [network.id])
  return Exit.succeed(rewound)
})
