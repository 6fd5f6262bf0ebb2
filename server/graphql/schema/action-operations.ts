import { Effect } from "effect"
import { Actions } from "../../../core/actions/actions.ts"
import { CANCELLABLE, RETRYABLE } from "../../../core/actions/decisions.ts"
import type { DeliveryState, DeliveryView, ManyOutcome } from "../../../core/actions/views.ts"
import { builder } from "../builder.ts"
import type { GraphqlContext } from "../context.ts"
import type { EngineError } from "../errors.ts"
import { defined } from "../input.ts"
import { invalid } from "../problems.ts"
import { run } from "../run.ts"
import { ActionDeliveryStateType, ActionDeliveryType, shownOne } from "./action-delivery.ts"

const ActionDeliveriesChangedType = builder.objectRef<ManyOutcome>("ActionDeliveriesChanged").implement({
  description: "What became of many deliveries.",
  fields: (t) => ({
    changed: t.exposeInt("changed", { description: "Deliveries that were retried, or cancelled." }),
    skipped: t.exposeInt("skipped", {
      description:
        "Deliveries that are left as they were: of unknown outcome (resolve them one by one), or changed by something else meanwhile.",
    }),
    endCursor: t.exposeString("next", {
      nullable: true,
      description: "Pass it as `after` to go on behind these deliveries; null if none is behind them.",
    }),
  }),
})

const MAX_CHANGES = 10_000

/** How many deliveries are changed, and in which states. Throws INVALID with all that is wrong. */
const manyArgs = <State extends DeliveryState>(
  first: number | null | undefined,
  state: DeliveryState | null | undefined,
  {
    verb,
    allowed,
    usual,
  }: { readonly verb: string; readonly allowed: ReadonlyArray<State>; readonly usual: ReadonlyArray<State> },
): { readonly limit: number; readonly states: ReadonlyArray<State> } => {
  const limit = first ?? 500
  const problems = []
  if (limit < 1 || limit > MAX_CHANGES) {
    problems.push({ path: "first", message: `is ${limit}; one call changes 1 to ${MAX_CHANGES} deliveries` })
  }
  const states = state == null ? usual : allowed.filter((one) => one === state)
  if (states.length === 0) {
    const names = allowed.map((one) => one.toUpperCase()).join(", ")
    problems.push({ path: "state", message: `is ${state!.toUpperCase()}; only these can be ${verb}: ${names}` })
  }
  if (problems.length > 0) throw invalid(problems)
  return { limit, states }
}

const RETRIED = { verb: "retried", allowed: RETRYABLE, usual: ["failed", "parked"] as const }
const CANCELLED = { verb: "cancelled", allowed: CANCELLABLE, usual: [] }

const decide = (
  context: GraphqlContext,
  decision: (actions: Actions["Service"]) => Effect.Effect<DeliveryView, EngineError>,
) => run(context, Actions.use(decision).pipe(Effect.map((delivery) => shownOne(context, delivery))))

builder.mutationFields((t) => {
  const id = t.arg.id({ description: "The delivery's id." })
  const first = t.arg.int({
    required: false,
    defaultValue: 500,
    description: "The most deliveries that are changed, 1 to 10000.",
  })
  const store = t.arg.id({ required: false, description: "Only deliveries that this store holds." })
  const after = t.arg.string({
    required: false,
    description: "Only deliveries behind this one: an `endCursor`, of such a call or of a list.",
  })
  return {
    retryActionDelivery: t.field({
      type: ActionDeliveryType,
      description:
        "Lets a delivery run again that is FAILED, PARKED or CANCELLED, with all the attempts of its action; one that is WAITING at once. What it did to the database it does not do twice, and its recorded calls are not sent again. CONFLICT while it runs, when it has succeeded, and when its outcome is unknown (resolve it).",
      args: { id },
      resolve: (_, args, context) => decide(context, (actions) => actions.retry(args.id)),
    }),
    retryActionDeliveries: t.field({
      type: ActionDeliveriesChangedType,
      description:
        "Lets many deliveries run again, the oldest first. Those of unknown outcome are left as they are. Answers when they wait for their runs.",
      args: {
        state: t.arg({
          type: ActionDeliveryStateType,
          required: false,
          description:
            "Only deliveries in this state: FAILED, PARKED, CANCELLED or WAITING. Those that are FAILED or PARKED unless set.",
        }),
        action: t.arg.id({ required: false, description: "Only deliveries to this action." }),
        store,
        first,
        after,
      },
      resolve: (_, { state, action, ...args }, context) => {
        const many = manyArgs(args.first, state, RETRIED)
        return run(
          context,
          Actions.use((actions) =>
            actions.retryAll({ ...many, ...defined({ action, store: args.store }), after: args.after ?? null }),
          ),
        )
      },
    }),
    resolveActionDelivery: t.field({
      type: ActionDeliveryType,
      description:
        "Says what came of the call of a delivery whose outcome is unknown, after a look at the provider; then it goes on. As done, the run gets `result` in place of the call; as not done, the call is sent. INVALID, with all problems, when the result does not fit the operation's output schema; CONFLICT when there is nothing to resolve (any more).",
      args: {
        id,
        done: t.arg.boolean({
          description:
            "Whether the provider did what was asked. If this is wrong, it is done twice (false) or not at all (true).",
        }),
        result: t.arg({
          type: "JSON",
          required: false,
          description:
            "With `done: true`: what the provider answered, as JSON that the operation's output schema reads. Null unless set.",
        }),
      },
      resolve: (_, args, context) => {
        if (!args.done && args.result != null) {
          throw invalid([{ path: "result", message: "goes with done: true; what was not done has no result" }])
        }
        return decide(context, (actions) =>
          actions.resolve(args.id, args.done ? { done: true, result: args.result ?? null } : { done: false }),
        )
      },
    }),
    cancelActionDelivery: t.field({
      type: ActionDeliveryType,
      description:
        "Gives a delivery up that is WAITING, FAILED or PARKED: what its runs did at providers stays, nothing more is done. It can still be retried while it is kept. CONFLICT in another state.",
      args: { id },
      resolve: (_, args, context) => decide(context, (actions) => actions.cancel(args.id)),
    }),
    cancelActionDeliveries: t.field({
      type: ActionDeliveriesChangedType,
      description: "Gives up many deliveries to one action, the oldest first.",
      args: {
        action: t.arg.id({ description: "The action whose deliveries are given up." }),
        state: t.arg({
          type: ActionDeliveryStateType,
          description: "Only deliveries in this state: WAITING, FAILED or PARKED.",
        }),
        store,
        first,
        after,
      },
      resolve: (_, { state, action, ...args }, context) => {
        const many = manyArgs(args.first, state, CANCELLED)
        return run(
          context,
          Actions.use((actions) =>
            actions.cancelAll({ ...many, action, ...defined({ store: args.store }), after: args.after ?? null }),
          ),
        )
      },
    }),
  }
})
