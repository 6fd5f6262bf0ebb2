import { Effect } from "effect"
import { Actions } from "../../../core/actions/actions.ts"
import type { CallView, DeliveriesFilter, DeliveryView } from "../../../core/actions/views.ts"
import { builder } from "../builder.ts"
import type { GraphqlContext } from "../context.ts"
import { defined, pageSize } from "../input.ts"
import { run } from "../run.ts"
import { DeliveryKindType } from "./dead-letter.ts"
import { PageInfoType } from "./page-info.ts"

export const ActionDeliveryStateType = builder.enumType("ActionDeliveryState", {
  description: "Where a delivery of an event to an action stands.",
  values: {
    WAITING: { value: "waiting", description: "It is run when it is due, at first or again." },
    RUNNING: { value: "running", description: "A runner has it at present." },
    SUCCEEDED: { value: "succeeded", description: "It is handled. Kept for the retention, then removed." },
    FAILED: {
      value: "failed",
      description:
        "It is not tried any more: it used up its attempts, the program has no such action, or its chain of events is too long. Mend what `reason` says, then retry it, or cancel it. Kept for the retention, then removed.",
    },
    PARKED: {
      value: "parked",
      description:
        "It rests until someone decides, and is kept until then: `code` says whether to resolve it, to retry it once the program is mended, or to cancel it.",
    },
    CANCELLED: { value: "cancelled", description: "Given up by an operator. Kept for the retention, then removed." },
  } as const,
})

const ProviderCallStateType = builder.enumType("ProviderCallState", {
  description: "What is known of a call to a provider.",
  values: {
    INTENT: {
      value: "intent",
      description: "It may have been sent, and nobody knows what came of it: look at the provider, by its key.",
    },
    DONE: { value: "done", description: "Its result is recorded: a rerun gets that, and does not send it again." },
  } as const,
})

const ProviderCallType = builder.objectRef<CallView>("ProviderCall").implement({
  description: "A recorded call of an action to a provider. What was sent and answered is not shown.",
  fields: (t) => ({
    place: t.exposeInt("place", { description: "Its place among the calls of the delivery, from 0." }),
    operation: t.exposeString("operation", { description: "The operation's name." }),
    key: t.exposeString("key", {
      description: "The idempotency key that it was sent with: the provider may know it by this.",
    }),
    state: t.expose("state", { type: ProviderCallStateType, description: "What is known of it." }),
    sentAt: t.expose("sentAt", {
      type: "DateTime",
      description: "When it was recorded: of an intent just before it was sent, else just before the first attempt.",
    }),
  }),
})

const ActionEventType = builder.objectRef<DeliveryView>("ActionEvent").implement({
  description: "An event that actions get: of a monitor's match, or emitted by the program or by an action.",
  fields: (t) => ({
    id: t.exposeID("event", { description: "Names it among all events; of a match, its delivery id." }),
    type: t.exposeString("type", {
      description: "Its type's name; `match:<monitor>` for the matches and retractions of a monitor.",
    }),
    version: t.exposeInt("version", { description: "The version of its type when it was emitted, from 1." }),
    tenant: t.exposeString("tenant", {
      nullable: true,
      description: "Whom it belongs to: its actions see only what is that tenant's. Null if to nobody.",
    }),
    network: t.exposeID("network", { nullable: true, description: "The network of the match; null of other events." }),
    matchId: t.exposeID("matchId", { nullable: true, description: "The match's id; null of other events." }),
    life: t.exposeInt("life", {
      nullable: true,
      description: "From 1: which life of the match it tells of; null of other events.",
    }),
    kind: t.field({
      type: DeliveryKindType,
      nullable: true,
      description: "Whether it tells of a match or of its retraction; null of other events.",
      resolve: ({ kind }) => (kind === null ? null : kind === "match" ? "MATCH" : "RETRACTED"),
    }),
    createdAt: t.expose("emittedAt", { type: "DateTime", description: "When it was committed." }),
  }),
})

/** A delivery in an answer, whose calls are read with those of its neighbours. */
export interface ShownDelivery extends DeliveryView {
  readonly calls: () => Promise<ReadonlyMap<string, ReadonlyArray<CallView>>>
}

/** Reads the calls of all deliveries of an answer at once, if they are asked for. */
export const shown = (
  context: Pick<GraphqlContext, "services">,
  deliveries: ReadonlyArray<DeliveryView>,
): ReadonlyArray<ShownDelivery> => {
  let all: ReturnType<ShownDelivery["calls"]> | undefined
  const calls = () =>
    (all ??= run(
      context,
      Actions.use((actions) => actions.calls(deliveries)),
    ))
  return deliveries.map((delivery) => ({ ...delivery, calls }))
}

/** The same of an answer of one. */
export const shownOne = (context: Pick<GraphqlContext, "services">, delivery: DeliveryView): ShownDelivery =>
  shown(context, [delivery])[0]!

export const ActionDeliveryType = builder.objectRef<ShownDelivery>("ActionDelivery").implement({
  description: "An event on its way to an action that is subscribed to it.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "Stable: `<store>:<number>`." }),
    store: t.exposeID("store", {
      description: "The database that holds it: `runtime`, or the name of the program's own event store.",
    }),
    action: t.exposeID("action", { description: "The action's name." }),
    event: t.field({ type: ActionEventType, description: "What it delivers.", resolve: (delivery) => delivery }),
    state: t.expose("state", { type: ActionDeliveryStateType, description: "Where it stands." }),
    attempts: t.exposeInt("attempts", { description: "Runs that failed since it came, or since it was retried." }),
    due: t.expose("due", {
      type: "DateTime",
      description: "When it may be run at the earliest; of one that waits no more, when that was.",
    }),
    code: t.exposeString("code", {
      nullable: true,
      description:
        "Why it is not run by itself. FAILED: `attempts_exhausted`, `unknown_action` (the program has no such action, or does not subscribe it any more), `event_chain_limit` (16 events led to each other). PARKED: `outcome_unknown` (resolve it), `payload_unreadable` (the program's type does not read it; it is tried again by a program whose type has a higher version), `call_diverged` (the run did not repeat the recorded calls; mend the action, then retry it).",
    }),
    reason: t.exposeString("reason", {
      nullable: true,
      description:
        "The same in words; of one that waits, why its last run failed. Of an unreadable payload it names rules and fields, never values.",
    }),
    retryable: t.exposeBoolean("retryable", {
      description: "Whether `retryActionDelivery` would let it run, as it stands.",
    }),
    resolvable: t.exposeBoolean("resolvable", {
      description: "Whether it waits for `resolveActionDelivery`: its code is `outcome_unknown`.",
    }),
    cancellable: t.exposeBoolean("cancellable", {
      description: "Whether `cancelActionDelivery` would give it up, as it stands.",
    }),
    calls: t.field({
      type: [ProviderCallType],
      description: "Its recorded calls to providers, in the order of making.",
      resolve: async ({ id, calls }) => [...((await calls()).get(id) ?? [])],
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was committed, with its event." }),
    settledAt: t.expose("settledAt", {
      type: "DateTime",
      nullable: true,
      description: "When it succeeded, failed or was cancelled; null of others.",
    }),
  }),
})

interface Page {
  readonly deliveries: ReadonlyArray<ShownDelivery>
  readonly next: string | null
  readonly filter: DeliveriesFilter
}

const ActionDeliveryEdgeType = builder.objectRef<ShownDelivery>("ActionDeliveryEdge").implement({
  description: "A delivery in a page.",
  fields: (t) => ({
    cursor: t.exposeString("id", { description: "Pass it as `after` to read on behind this delivery." }),
    node: t.field({ type: ActionDeliveryType, description: "The delivery.", resolve: (delivery) => delivery }),
  }),
})

const ActionDeliveryConnectionType = builder.objectRef<Page>("ActionDeliveryConnection").implement({
  description: "A page of deliveries to actions.",
  fields: (t) => ({
    edges: t.field({
      type: [ActionDeliveryEdgeType],
      description: "The oldest first; those of the store `runtime` before those of the program's own.",
      resolve: ({ deliveries }) => [...deliveries],
    }),
    pageInfo: t.field({
      type: PageInfoType,
      description: "Where the page ends.",
      resolve: ({ deliveries, next }) => ({ hasNextPage: next !== null, endCursor: deliveries.at(-1)?.id ?? null }),
    }),
    totalCount: t.int({
      description:
        "All deliveries that the filter shows, not those of this page alone. Of an action in one state and store no more than 10000 are counted.",
      resolve: ({ filter }, _, context) =>
        run(
          context,
          Actions.use((actions) => actions.count(filter)),
        ),
    }),
  }),
})

builder.queryFields((t) => ({
  actionDeliveries: t.field({
    type: ActionDeliveryConnectionType,
    description:
      "Deliveries of events to the program's actions, the oldest first. NOT_FOUND for an action that the program neither has nor keeps deliveries to, and for a store that it does not have; INVALID_POSITION for an `after` that is no cursor of these.",
    args: {
      state: t.arg({ type: ActionDeliveryStateType, required: false, description: "Only deliveries in this state." }),
      action: t.arg.id({ required: false, description: "Only deliveries to this action." }),
      store: t.arg.id({ required: false, description: "Only deliveries that this store holds." }),
      first: t.arg.int({
        required: false,
        defaultValue: 50,
        description: "The most deliveries in the page, 1 to 1000.",
      }),
      after: t.arg.string({ required: false, description: "The `endCursor` of the page before." }),
    },
    resolve: (_, { state, action, store, first, after }, context) => {
      const limit = pageSize(first)
      const filter = defined({ state, action, store })
      return run(
        context,
        Actions.use((actions) => actions.list({ ...filter, limit, after: after ?? null })).pipe(
          Effect.map(({ deliveries, next }) => ({ deliveries: shown(context, deliveries), next, filter })),
        ),
      )
    },
  }),
  actionDelivery: t.field({
    type: ActionDeliveryType,
    nullable: true,
    description: "One delivery, or null if there is none of this id (any more).",
    args: { id: t.arg.id({ description: "The delivery's id." }) },
    resolve: (_, { id }, context) =>
      run(
        context,
        Actions.use((actions) => actions.get(id)).pipe(
          Effect.map((delivery) => shownOne(context, delivery)),
          Effect.catchTag("DeliveryNotFound", () => Effect.succeed(null)),
        ),
      ),
  }),
}))
