import { Feed, type MatchPage } from "../../../core/engine/feed.ts"
import { type MatchView, Resources } from "../../../core/engine/resources.ts"
import { builder } from "../builder.ts"
import { blockNumber, defined, pageSize, toDefinition } from "../input.ts"
import { run } from "../run.ts"
import { CursorType } from "./cursor.ts"
import { MonitorInput } from "./monitor.ts"
import { PageInfoType } from "./page-info.ts"

export const MatchType = builder.objectRef<MatchView>("Match").implement({
  description: "A monitor's hit that passed its gate.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The same whenever the same event is matched again." }),
    monitor: t.exposeID("monitor", { description: "The monitor that matched." }),
    network: t.exposeID("network", { description: "The network that it was found on." }),
    cursor: t.field({ type: CursorType, description: "Where it was found.", resolve: (match) => match.cursor }),
    event: t.expose("event", {
      type: "JSON",
      description: "What matched. Integers of ABI types are decimal strings, whatever their size.",
    }),
    time: t.expose("time", {
      type: "DateTime",
      nullable: true,
      description: "When it happened (on EVM: the block's time). Null where the source has no time.",
    }),
  }),
})

const MatchEdgeType = builder.objectRef<MatchPage["items"][number]>("MatchEdge").implement({
  description: "A match in a page.",
  fields: (t) => ({
    cursor: t.exposeString("cursor", { description: "Its feed position: pass it as `after` to read on behind it." }),
    node: t.field({ type: MatchType, description: "The match.", resolve: (edge) => edge.match }),
  }),
})

const MatchConnectionType = builder.objectRef<MatchPage>("MatchConnection").implement({
  description: "A page of matches.",
  fields: (t) => ({
    edges: t.field({ type: [MatchEdgeType], description: "Oldest first.", resolve: (page) => [...page.items] }),
    pageInfo: t.field({
      type: PageInfoType,
      description:
        "Where the page ends. A subscription may follow from the last page's `endCursor`: nothing is missed.",
      resolve: (page) => page,
    }),
  }),
})

builder.queryFields((t) => ({
  matches: t.field({
    type: MatchConnectionType,
    description:
      "What the feed still holds and no retraction took back, oldest first. The first page fixes where the last one ends.",
    args: {
      network: t.arg.id({ required: false, description: "Only matches of this network." }),
      monitor: t.arg.id({ required: false, description: "Only matches of this monitor." }),
      first: t.arg.int({ required: false, defaultValue: 50, description: "The most matches in the page, 1 to 1000." }),
      after: t.arg.string({ required: false, description: "The `endCursor` of the page before." }),
    },
    resolve: (_, { network, monitor, first, after }, context) => {
      const size = pageSize(first)
      return run(
        context,
        Feed.use((feed) => feed.matches({ ...defined({ network, monitor }), first: size, after: after ?? null })),
      )
    },
  }),
  testMonitor: t.field({
    type: [MatchType],
    description:
      "What a monitor would match in one block, before its gate. It need not exist; nothing is stored or sent.",
    args: {
      input: t.arg({ type: MonitorInput, description: "The monitor to try." }),
      block: t.arg({ type: "BigInt", description: "The block's number." }),
    },
    resolve: async (_, { input, block }, context) => {
      const primary = blockNumber("block", block)
      return [
        ...(await run(
          context,
          Resources.use((resources) => resources.testMonitor(toDefinition(input), primary)),
        )),
      ]
    },
  }),
}))
