import { Effect } from "effect"
import { Resources } from "../../../core/engine/resources.ts"
import { NotFound } from "../../../core/engine/error.ts"
import { builder } from "../builder.ts"
import { toGraphQLError } from "../errors.ts"
import { toDefinition, toPutOptions } from "../input.ts"
import { run } from "../run.ts"
import { CursorType } from "./cursor.ts"
import { GateInput, GateType } from "./gate.ts"
import { MonitorType, NetworkType } from "./refs.ts"
import { SinkType } from "./sink.ts"

MonitorType.implement({
  description: "What to look for on a network, and where its matches go.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "Its name, chosen by whoever made it." }),
    network: t.field({
      type: NetworkType,
      description: "The network that it watches.",
      resolve: async (monitor, _, { views }) => {
        const network = (await views.networks).find(({ id }) => id === monitor.network)
        if (network === undefined) throw toGraphQLError(new NotFound({ resource: `network ${monitor.network}` }))
        return network
      },
    }),
    selector: t.expose("selector", {
      type: "JSON",
      description: "What the source looks for and decodes; its form belongs to the network's plugin.",
    }),
    predicate: t.exposeString("predicate", {
      nullable: true,
      description: "A CEL expression over the selected event that must be true. Null matches all.",
    }),
    gate: t.field({
      type: GateType,
      nullable: true,
      description: "Which of its hits become matches. Null: all of them.",
      resolve: (monitor) => monitor.gate,
    }),
    sinks: t.field({
      type: [SinkType],
      description: "Where matches are delivered. With none they show in `matches` and the feed alone.",
      resolve: async (monitor, _, { views }) => {
        const sinks = await views.sinks
        return monitor.sinks.flatMap((id) => sinks.find((sink) => sink.id === id) ?? [])
      },
    }),
    enabled: t.exposeBoolean("enabled", { description: "Whether it watches at present." }),
    revision: t.exposeString("revision", { description: "Changes with every change; see `ifRevision`." }),
    effectiveFrom: t.field({
      type: CursorType,
      nullable: true,
      description: "The position behind which this revision took effect. Null until its first events were read.",
      resolve: (monitor) => monitor.effectiveFrom,
    }),
    error: t.exposeString("error", {
      nullable: true,
      description:
        "The last error of its predicate or gate at run time. The event behind it became a dead letter. Or why it does not compile, or what its source looks for before it takes effect.",
    }),
  }),
})

builder.queryFields((t) => ({
  monitors: t.field({
    type: [MonitorType],
    description: "All monitors, or those of one network.",
    args: { network: t.arg.id({ required: false, description: "Only those that watch this network." }) },
    resolve: async (_, { network }, { views }) =>
      (await views.monitors).filter((monitor) => network == null || monitor.network === network),
  }),
  monitor: t.field({
    type: MonitorType,
    nullable: true,
    description: "One monitor, or null if there is none of this id.",
    args: { id: t.arg.id({ description: "The monitor's id." }) },
    resolve: async (_, { id }, { views }) => (await views.monitors).find((monitor) => monitor.id === id),
  }),
}))

export const MonitorInput = builder.inputType("MonitorInput", {
  description: "A monitor as it shall be.",
  fields: (t) => ({
    id: t.id({ description: "1 to 128 letters, digits, '-', '_' or '.', starting with a letter or digit." }),
    network: t.id({ description: "The network that it watches." }),
    selector: t.field({
      type: "JSON",
      description:
        'What to look for. On EVM one of { kind: "event", address: ["0x…"], event: "event Transfer(address indexed from, address indexed to, uint256 value)" }, ' +
        '{ kind: "call", address: ["0x…"], function: "function transfer(address to, uint256 value)" }, ' +
        '{ kind: "transaction", from: ["0x…"], min_value: "1000000000000000000" } and { kind: "block" }.',
    }),
    predicate: t.string({
      required: false,
      description: "A CEL expression, such as `args.value >= 1000 && args.to != args.from`. Null matches all.",
    }),
    gate: t.field({
      type: GateInput,
      required: false,
      description: "Which of its hits become matches; all unless given.",
    }),
    sinks: t.idList({ description: "Ids of the sinks that matches are delivered to." }),
    enabled: t.boolean({ required: false, defaultValue: true, description: "Whether it watches." }),
    ifRevision: t.string({ required: false, description: "CONFLICT unless the stored monitor has this revision." }),
    validateOnly: t.boolean({
      required: false,
      defaultValue: false,
      description: "Checks everything and answers what would be stored; stores nothing.",
    }),
  }),
})

builder.mutationFields((t) => ({
  putMonitor: t.field({
    type: MonitorType,
    description: "Makes a monitor, or changes it. A refused input answers INVALID with all its problems.",
    args: { input: t.arg({ type: MonitorInput, description: "The monitor as it shall be." }) },
    resolve: (_, { input }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.putMonitor(toDefinition(input), toPutOptions(input))),
      )
    },
  }),
  deleteMonitor: t.boolean({
    description: "Deletes a monitor. CONFLICT while deliveries of its matches are owed, unless `discard`.",
    args: {
      id: t.arg.id({ description: "The monitor's id." }),
      discard: t.arg.boolean({
        required: false,
        defaultValue: false,
        description: "Drops its deliveries that are still owed, and its dead letters.",
      }),
    },
    resolve: (_, { id, discard }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.deleteMonitor(id, { discard: discard ?? false })).pipe(Effect.as(true)),
      )
    },
  }),
}))
