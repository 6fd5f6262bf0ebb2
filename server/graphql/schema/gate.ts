import type { Gate } from "../../../core/model/policy.ts"
import { builder } from "../builder.ts"

const GateTypeType = builder.enumType("GateType", {
  description: "How a gate decides, on event time and for each value of `by` apart.",
  values: {
    THRESHOLD: {
      value: "threshold",
      description:
        "`count` hits that span at most `windowMs` become matches together; counting starts anew behind them.",
    },
    MAX_ONCE: {
      value: "max_once",
      description: "A hit becomes a match; others less than `windowMs` behind it are dropped.",
    },
  } as const,
})

export const GateType = builder.objectRef<Gate>("Gate").implement({
  description: "Decides which hits of a monitor become matches.",
  fields: (t) => ({
    type: t.expose("type", { type: GateTypeType, description: "How it decides." }),
    count: t.int({
      nullable: true,
      description: "How many hits a threshold needs; null for MAX_ONCE.",
      resolve: (gate) => gate.count ?? null,
    }),
    windowMs: t.exposeInt("windowMs", { description: "The length of the window, in milliseconds of event time." }),
    by: t.exposeString("by", {
      nullable: true,
      description: "A CEL expression; each of its values has a window of its own. Null: all hits have one.",
    }),
  }),
})

export const GateInput = builder.inputType("GateInput", {
  description: "Decides which hits of a monitor become matches.",
  fields: (t) => ({
    type: t.field({ type: GateTypeType, description: "How it decides." }),
    count: t.int({ required: false, description: "How many hits a threshold needs, 1 to 1000. Not for MAX_ONCE." }),
    windowMs: t.int({ description: "The length of the window, in milliseconds of event time; at most 24 days." }),
    by: t.string({
      required: false,
      description:
        "A CEL expression, such as `args.from`, whose value is a string, an address, bytes, a bool or an integer; each value has a window of its own.",
    }),
  }),
})
