import { builder } from "./builder.ts"
import "./scalars.ts"
import "./schema/cursor.ts"
import "./schema/checkpoint.ts"
import "./schema/network.ts"
import "./schema/monitor.ts"
import "./schema/gate.ts"
import "./schema/sink.ts"
import "./schema/plugin.ts"
import "./schema/page-info.ts"
import "./schema/dead-letter.ts"
import "./schema/dead-letter-operations.ts"
import "./schema/match.ts"
import "./schema/feed.ts"
import "./schema/action-delivery.ts"
import "./schema/action-operations.ts"
import "./schema/action.ts"

builder.queryType({ description: "What can be read." })
builder.mutationType({
  description: "What can be changed. A change is stored and queued when its mutation answers; `state` shows the rest.",
})
builder.subscriptionType({
  description: "Live streams. Those of the feed can be resumed: remember the last `position` and pass it as `after`.",
})

/** The executable schema. */
export const schema = builder.toSchema({ sortSchema: true })
