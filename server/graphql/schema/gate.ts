import { builder } from "../builder.ts"

const GateTypeType = builder.enumType("GateType", {
  description: "How a gate decides.",
  values: {
    THRESHOLD: { description: "Emits `count` matches together once so many fell within `windowMs`." },
    MAX_ONCE: { description: "Emits the first match and drops the others within `windowMs` of it." },
  } as const,
})

/** A gate as it is shown. */
export interface GateShape {
  readonly type: "THRESHOLD" | "MAX_ONCE"
  readonly count?: number | null
  readonly windowMs: number
  readonly by?: string | null
}

export const GateType = builder.objectRef<GateShape>("Gate").implement({
  description: "Holds matches of a monitor back until a condition over several of them is met.",
  fields: (t) => ({
    type: t.expose("type", { type: GateTypeType, description: "How it decides." }),
    count: t.exposeInt("count", { nullable: true, description: "How many matches a threshold needs." }),
    windowMs: t.exposeInt("windowMs", { description: "The length of the window, in milliseconds of event time." }),
    by: t.exposeString("by", {
      nullable: true,
      description: "A CEL expression; each of its values has a window of its own.",
    }),
  }),
})

export const GateInput = builder.inputType("GateInput", {
  description: "Holds matches back until a condition over several of them is met.",
  fields: (t) => ({
    type: t.field({ type: GateTypeType, description: "How it decides." }),
    count: t.int({ required: false, description: "How many matches a threshold needs." }),
    windowMs: t.int({ description: "The length of the window, in milliseconds of event time." }),
    by: t.string({
      required: false,
      description: "A CEL expression, such as `args.from`; each of its values has a window of its own.",
    }),
  }),
})
