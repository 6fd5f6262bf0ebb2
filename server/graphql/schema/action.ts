import { Clock, Effect, Stream } from "effect"
import { Actions } from "../../../core/actions/actions.ts"
import type { ActionView, DeliveryChange } from "../../../core/actions/views.ts"
import { builder } from "../builder.ts"
import { run, subscribe } from "../run.ts"
import { ActionDeliveryStateType, ActionDeliveryType, shownOne } from "./action-delivery.ts"

const ActionSubscriptionType = builder.objectRef<ActionView["subscriptions"][number]>("ActionSubscription").implement({
  description: "A kind of event that an action gets.",
  fields: (t) => ({
    type: t.exposeString("type", {
      description: "The type's name; `match:<monitor>` for the matches and retractions of a monitor.",
    }),
    version: t.exposeInt("version", { description: "The version of the schema that the program reads it by." }),
    monitor: t.exposeID("monitor", {
      nullable: true,
      description: "The monitor, which names the sink `actions`; null of events that the program emits.",
    }),
  }),
})

const ActionDeliveryCountType = builder.objectRef<ActionView["counts"][number]>("ActionDeliveryCount").implement({
  description: "How many deliveries an action has in one state.",
  fields: (t) => ({
    store: t.exposeID("store", { description: "The store that holds them." }),
    state: t.expose("state", { type: ActionDeliveryStateType, description: "The state." }),
    deliveries: t.exposeInt("deliveries", { description: "How many; no more than 10000 are counted." }),
  }),
})

/** An action, and when it was looked at. */
interface Shown extends ActionView {
  readonly now: number
}

const ActionType = builder.objectRef<Shown>("Action").implement({
  description: "A durable action of the program.",
  fields: (t) => ({
    name: t.exposeID("name", { description: "Stored with each of its deliveries." }),
    declared: t.exposeBoolean("declared", {
      description:
        "Whether the program has it. If not, deliveries to it fail as `unknown_action`: add it again and retry them, or cancel them.",
    }),
    subscriptions: t.field({
      type: [ActionSubscriptionType],
      description: "The events that it gets.",
      resolve: ({ subscriptions }) => [...subscriptions],
    }),
    counts: t.field({
      type: [ActionDeliveryCountType],
      description: "Its deliveries by store and state; a state without any is left out.",
      resolve: ({ counts }) => [...counts],
    }),
    oldestWaitingSeconds: t.float({
      nullable: true,
      description: "How long ago the oldest of those came that are WAITING, in seconds; null if none is.",
      resolve: ({ counts, now }) => {
        const oldest = counts.flatMap(({ state, oldest }) => (state === "waiting" ? [oldest] : []))
        return oldest.length === 0 ? null : Math.max(0, now - Math.min(...oldest)) / 1000
      },
    }),
  }),
})

builder.queryField("actions", (t) =>
  t.field({
    type: [ActionType],
    description:
      "The durable actions of the program, and those that it does not have any more while deliveries to them are kept.",
    resolve: (_, __, context) =>
      run(
        context,
        Effect.zipWith(
          Clock.currentTimeMillis,
          Actions.use((actions) => actions.overview()),
          (now, views) => views.map((view) => ({ ...view, now })),
        ),
      ),
  }),
)

const ActionDeliveryChangeType = builder.objectRef<DeliveryChange>("ActionDeliveryChange").implement({
  description: "A change of a delivery's state.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The delivery's id." }),
    store: t.exposeID("store", { description: "The store that holds it." }),
    action: t.exposeID("action", { description: "The action's name." }),
    event: t.exposeID("event", { description: "The event's id." }),
    state: t.expose("state", { type: ActionDeliveryStateType, description: "The new state." }),
    code: t.exposeString("code", { nullable: true, description: "Why it is FAILED or PARKED; null of others." }),
    delivery: t.field({
      type: ActionDeliveryType,
      nullable: true,
      description: "The delivery as it stands when this is read; it may have gone on.",
      resolve: ({ id }, _, context) =>
        run(
          context,
          Actions.use((actions) => actions.get(id)).pipe(
            Effect.map((delivery) => shownOne(context, delivery)),
            Effect.catchTag("DeliveryNotFound", () => Effect.succeed(null)),
          ),
        ),
    }),
  }),
})

builder.subscriptionField("actionDeliveryChanges", (t) =>
  t.field({
    type: ActionDeliveryChangeType,
    description:
      "Each change of a delivery's state that this process makes, from now on. Not durable: what other runners of the same database do is not heard, and a slow reader misses the oldest; `actionDeliveries` shows what there is.",
    args: {
      state: t.arg({ type: ActionDeliveryStateType, required: false, description: "Only changes to this state." }),
      action: t.arg.id({ required: false, description: "Only deliveries to this action." }),
      store: t.arg.id({ required: false, description: "Only deliveries that this store holds." }),
    },
    subscribe: (_, { state, action, store }, context) =>
      subscribe(
        context,
        Actions.useSync(({ changes }) =>
          Stream.filter(
            changes,
            (change) =>
              (state == null || change.state === state) &&
              (action == null || change.action === action) &&
              (store == null || change.store === store),
          ),
        ),
      ),
    resolve: (change) => change,
  }),
)
