import type { Cursor } from "../../../core/model/cursor.ts"
import { builder } from "../builder.ts"

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
