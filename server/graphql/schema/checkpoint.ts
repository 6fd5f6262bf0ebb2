import type { CheckpointView } from "../../../core/engine/resources.ts"
import { builder } from "../builder.ts"
import { CursorType } from "./cursor.ts"

export const CheckpointType = builder.objectRef<CheckpointView>("Checkpoint").implement({
  description:
    "The point up to which a network is finished: everything at or before it was delivered or became a dead letter.",
  fields: (t) => ({
    network: t.exposeID("network", { description: "The network's id." }),
    cursor: t.field({ type: CursorType, description: "The position.", resolve: (checkpoint) => checkpoint.cursor }),
    updatedAt: t.expose("updatedAt", { type: "DateTime", description: "When it was written." }),
  }),
})
