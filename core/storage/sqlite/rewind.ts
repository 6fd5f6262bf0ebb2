import { Result } from "effect"
import { stillStanding } from "../retracting.ts"
import type { StorageError } from "../error.ts"
import type { Rewound } from "../storage.ts"
import type { NetworkRow } from "../network-row.ts"
import { makeCutGates } from "./cut-gates.ts"
import type { Native } from "./native.ts"
import { sql } from "./sql.ts"
import { makeInvalidationRead } from "./taking-back.ts"

/** Prepares the last step of taking back. */
export const makeRewind = (native: Native) => {
  const invalidation = makeInvalidationRead(native)
  const deleteAnchorsBehind = native.prepare(sql.deleteAnchorsBehind)
  const deleteRecordsBehind = native.prepare(sql.deleteRecordsBehind)
  const lowerEffective = native.prepare(sql.lowerEffective)
  const cutGates = makeCutGates(native)
  const deleteInvalidation = native.prepare(sql.deleteInvalidation)

  return (network: NetworkRow, journalDepth: number, now: number): Result.Result<Rewound, StorageError> => {
    const recorded = invalidation(network.id)
    if (recorded === null) return Result.succeed({ to: network.minted, moved: false, gap: null })
    if (!recorded.retracted) return Result.fail(stillStanding(network.id))
    const { from } = recorded
    const { target, ...rewound } = network.rewind(from, journalDepth, now)
    deleteAnchorsBehind.run(network.id, from.primary)
    deleteRecordsBehind.run(network.id, from.primary, from.secondary)
    lowerEffective.run(target.primary, target.secondary, network.id, target.primary, target.secondary)
    // The steps left but what was found late since.
    cutGates(network.id, from, Number.MAX_SAFE_INTEGER)
    deleteInvalidation.run(network.id)
    return Result.succeed(rewound)
  }
}
