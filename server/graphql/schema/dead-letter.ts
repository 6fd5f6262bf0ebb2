import { type DeadLetter, type DeadLetterPage, DeadLetters } from "../../../core/engine/dead-letters.ts"
import { matchBody, retractedBody } from "../../../core/model/sink-event.ts"
import { builder } from "../builder.ts"
import { defined, pageSize } from "../input.ts"
import { run } from "../run.ts"
import { CursorType } from "./cursor.ts"
import { PageInfoType } from "./page-info.ts"

export const DeliveryKindType = builder.enumType("DeliveryKind", {
  description: "What a delivery tells its receiver.",
  values: {
    MATCH: { description: "That something matched." },
    RETRACTED: { description: "That a match is taken back." },
  } as const,
})

/** The arguments that say which kinds of letters are meant, as the engine takes them. */
export const kindFilter = ({
  kind,
  ended,
}: {
  readonly kind?: "MATCH" | "RETRACTED" | null | undefined
  readonly ended?: boolean | null | undefined
}) => defined({ kind: kind == null ? kind : kind === "MATCH" ? ("match" as const) : ("retracted" as const), ended })

export const ENDED = "Only letters of matches that the chain took back (true), or that still stand (false)."

export const DeadLetterType = builder.objectRef<DeadLetter>("DeadLetter").implement({
  description: "A delivery that used up its retries, kept until it is replayed or discarded.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "Stable." }),
    network: t.exposeID("network", { description: "The network that the match is of." }),
    sink: t.exposeID("sink", { description: "The sink that did not take it." }),
    monitor: t.exposeID("monitor", { description: "The monitor that matched." }),
    matchId: t.exposeID("matchId", { description: "The match's id." }),
    cursor: t.field({
      type: CursorType,
      description: "Where the match was found.",
      resolve: (letter) => letter.cursor,
    }),
    kind: t.field({
      type: DeliveryKindType,
      description: "What the receiver should have heard.",
      resolve: (letter) => (letter.kind === "match" ? "MATCH" : "RETRACTED"),
    }),
    attempts: t.exposeInt("attempts", { description: "How often it was tried." }),
    reason: t.exposeString("reason", { description: "Why the last attempt failed, or why none was made." }),
    createdAt: t.expose("createdAt", {
      type: "DateTime",
      description: "When it became a dead letter; a replay that fails leaves it.",
    }),
    payload: t.field({
      type: "JSON",
      nullable: true,
      description: "What was to be delivered, as it stands on the wire.",
      resolve: ({ kind, matchId, payload }) => {
        if (kind === "retracted") return JSON.parse(retractedBody(matchId))
        return payload === null ? null : JSON.parse(matchBody(payload))
      },
    }),
    replayable: t.exposeBoolean("replayable", { description: "Whether a replay would be attempted at present." }),
    whyNot: t.exposeString("whyNot", {
      nullable: true,
      description:
        "The error code that a replay would answer: CONFLICT while the sink is paused, FAILED or missing, or the letter is being replayed.",
    }),
  }),
})

const DeadLetterEdgeType = builder.objectRef<DeadLetterPage["items"][number]>("DeadLetterEdge").implement({
  description: "A dead letter in a page.",
  fields: (t) => ({
    cursor: t.exposeString("cursor", { description: "Pass it as `after` to read on behind this letter." }),
    node: t.field({ type: DeadLetterType, description: "The dead letter.", resolve: (edge) => edge.node }),
  }),
})

const DeadLetterConnectionType = builder.objectRef<DeadLetterPage>("DeadLetterConnection").implement({
  description: "A page of dead letters.",
  fields: (t) => ({
    edges: t.field({
      type: [DeadLetterEdgeType],
      description: "In the order in which they died.",
      resolve: (page) => [...page.items],
    }),
    pageInfo: t.field({ type: PageInfoType, description: "Where the page ends.", resolve: (page) => page }),
    totalCount: t.exposeInt("totalCount", {
      description: "All letters that the filter shows, not those of this page alone.",
    }),
  }),
})

builder.queryField("deadLetters", (t) =>
  t.field({
    type: DeadLetterConnectionType,
    description:
      "Deliveries that used up their retries, in the order in which they died. NOT_FOUND for a sink or monitor that neither exists nor has letters.",
    args: {
      network: t.arg.id({ description: "The network whose letters are shown." }),
      sink: t.arg.id({ required: false, description: "Only letters to this sink." }),
      monitor: t.arg.id({ required: false, description: "Only letters of this monitor." }),
      kind: t.arg({ type: DeliveryKindType, required: false, description: "Only letters of this kind." }),
      ended: t.arg.boolean({ required: false, description: ENDED }),
      first: t.arg.int({ required: false, defaultValue: 50, description: "The most letters in the page, 1 to 1000." }),
      after: t.arg.string({ required: false, description: "The `endCursor` of the page before." }),
    },
    resolve: (_, { network, sink, monitor, kind, ended, first, after }, context) => {
      const size = pageSize(first)
      return run(
        context,
        DeadLetters.use((letters) =>
          letters.list({
            network,
            ...defined({ sink, monitor }),
            ...kindFilter({ kind, ended }),
            first: size,
            after: after ?? null,
          }),
        ),
      )
    },
  }),
)
