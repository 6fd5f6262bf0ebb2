import { type Cursor, MAX_SECONDARY } from "../../../core/model/cursor.ts"
import { builder } from "../builder.ts"
import { blockNumber } from "../input.ts"
import { invalid } from "../problems.ts"

export const CursorType = builder.objectRef<Cursor>("Cursor").implement({
  description: "A position in a source's feed. Cursors are ordered by `primary`, then by `secondary`.",
  fields: (t) => ({
    primary: t.expose("primary", { type: "BigInt", description: "On EVM chains the block number." }),
    secondary: t.exposeInt("secondary", {
      description:
        "On EVM chains the place in the block: 0 is the block itself, 1 + i transaction i, 2^20 + i log i, and 2147483647 the end of the block.",
    }),
  }),
})

export const CursorInput = builder.inputType("CursorInput", {
  description: "A position in a source's feed; without a `secondary`, the end of that primary.",
  fields: (t) => ({
    primary: t.field({ type: "BigInt", description: "On EVM chains the block number." }),
    secondary: t.int({ required: false, description: "On EVM chains the place in the block, as in Cursor." }),
  }),
})

/** The cursor that an input stands for. Throws INVALID for one that cannot be. */
export const toCursor = (
  path: string,
  { primary, secondary }: { readonly primary: bigint; readonly secondary?: number | null | undefined },
): Cursor => {
  if (secondary != null && secondary < 0) {
    throw invalid([{ path: `${path}.secondary`, message: `is ${secondary}; it lies between 0 and ${MAX_SECONDARY}` }])
  }
  return { primary: blockNumber(`${path}.primary`, primary), secondary: secondary ?? MAX_SECONDARY }
}
