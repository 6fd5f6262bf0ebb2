import { Effect } from "effect"
import { type NetworkState, Resources } from "../../../core/engine/resources.ts"
import { builder } from "../builder.ts"
import { toDefinition, toPutOptions } from "../input.ts"
import { run } from "../run.ts"
import { CheckpointType } from "./checkpoint.ts"
import { CursorInput, CursorType, toCursor } from "./cursor.ts"
import { MonitorType, NetworkType } from "./refs.ts"

const states = {
  STARTING: { description: "Not reading yet; `error` says what it waits for, if anything." },
  RUNNING: { description: "Reads its source and delivers." },
  DRAINING: { description: "Finishes what is in flight before it stops, pauses or rewinds." },
  INVALIDATING: { description: "Takes back what a fork of the chain, or an operator, made untrue." },
  PAUSED: { description: "Rests until it is resumed." },
  FAILED: { description: "Cannot run as it is configured; `error` says why." },
  STANDBY: { description: "Another process runs it." },
} as const satisfies Record<NetworkState, { description: string }>

const NetworkStateType = builder.enumType("NetworkState", {
  description: "What a network's pipeline does at present.",
  values: states,
})

NetworkType.implement({
  description: "One source plugin with its config, and the pipeline that it feeds.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "Its name, chosen by whoever made it." }),
    module: t.exposeString("module", { description: "The source plugin, such as `evm-rpc`." }),
    config: t.expose("config", {
      type: "JSON",
      description: "The plugin's config. Sensitive fields are masked; a put of the masked value keeps the stored one.",
    }),
    journalDepth: t.exposeInt("journalDepth", {
      nullable: true,
      description:
        "How many blocks behind the checkpoint deliveries are remembered, so that they can be retracted. Null: as the server is set.",
    }),
    state: t.expose("state", { type: NetworkStateType, description: "What its pipeline does at present." }),
    error: t.exposeString("error", {
      nullable: true,
      description: "Why it is FAILED, or the last error after which it tries again.",
    }),
    checkpoint: t.field({
      type: CheckpointType,
      nullable: true,
      description: "Everything at or before it is finished. Null until the network has started.",
      resolve: (network) => network.checkpoint,
    }),
    head: t.field({
      type: CursorType,
      nullable: true,
      description: "The newest position that the source has seen.",
      resolve: (network) => network.head,
    }),
    lag: t.expose("lag", {
      type: "BigInt",
      nullable: true,
      description: "How many blocks the checkpoint is behind the head. Null while either is unknown.",
    }),
    inFlightEvents: t.exposeInt("inFlightEvents", { description: "Events that were read and are not finished." }),
    monitors: t.field({
      type: [MonitorType],
      description: "The monitors that watch this network.",
      resolve: async (network, _, { views }) =>
        (await views.monitors).filter((monitor) => monitor.network === network.id),
    }),
    deadLetterCount: t.exposeInt("deadLetterCount", {
      description: "Deliveries of this network that used up their retries and still wait.",
    }),
    revision: t.exposeString("revision", { description: "Changes with every change; see `ifRevision`." }),
  }),
})

builder.queryFields((t) => ({
  networks: t.field({
    type: [NetworkType],
    description: "All networks.",
    resolve: async (_, __, { views }) => [...(await views.networks)],
  }),
  network: t.field({
    type: NetworkType,
    nullable: true,
    description: "One network, or null if there is none of this id.",
    args: { id: t.arg.id({ description: "The network's id." }) },
    resolve: async (_, { id }, { views }) => (await views.networks).find((network) => network.id === id),
  }),
}))

const NetworkInput = builder.inputType("NetworkInput", {
  description: "A network as it shall be.",
  fields: (t) => ({
    id: t.id({ description: "1 to 128 letters, digits, '-', '_' or '.', starting with a letter or digit." }),
    module: t.string({ description: "The source plugin, such as `evm-rpc`; `plugins` lists them." }),
    config: t.field({
      type: "JSON",
      description: "The plugin's config. Secrets are references: `env:NAME`, `file:PATH`.",
    }),
    journalDepth: t.int({
      required: false,
      description:
        "How many blocks behind the checkpoint deliveries are remembered, so that they can be retracted. Unless set, as the server is set.",
    }),
    ifRevision: t.string({ required: false, description: "CONFLICT unless the stored network has this revision." }),
    validateOnly: t.boolean({
      required: false,
      defaultValue: false,
      description: "Checks everything and answers what would be stored; stores nothing.",
    }),
  }),
})

builder.mutationFields((t) => ({
  putNetwork: t.field({
    type: NetworkType,
    description: "Makes a network, or changes it. A refused input answers INVALID with all its problems.",
    args: { input: t.arg({ type: NetworkInput, description: "The network as it shall be." }) },
    resolve: (_, { input }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.putNetwork(toDefinition(input), toPutOptions(input))),
      )
    },
  }),
  pauseNetwork: t.field({
    type: NetworkType,
    description: "Lets a network rest, also over restarts: its source and sinks stop, what is owed stays owed.",
    args: { id: t.arg.id({ description: "The network's id." }) },
    resolve: (_, { id }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.pauseNetwork(id)),
      )
    },
  }),
  resumeNetwork: t.field({
    type: NetworkType,
    description: "Lets a paused network go on, and tries a FAILED one again.",
    args: { id: t.arg.id({ description: "The network's id." }) },
    resolve: (_, { id }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.resumeNetwork(id)),
      )
    },
  }),
  rewindNetwork: t.field({
    type: NetworkType,
    description:
      "Takes back everything behind a position, as if the chain had: retracts what the journal holds, then goes on from there (or stays paused). CONFLICT above the checkpoint and below the start.",
    args: {
      id: t.arg.id({ description: "The network's id." }),
      to: t.arg({ type: CursorInput, description: "The last position that stays." }),
    },
    resolve: (_, { id, to }, context) => {
      context.views.forget()
      const cursor = toCursor("to", to)
      return run(
        context,
        Resources.use((resources) => resources.rewindNetwork(id, cursor)),
      )
    },
  }),
  deleteNetwork: t.boolean({
    description: "Deletes a network. CONFLICT while monitors name it, or while it owes deliveries unless `discard`.",
    args: {
      id: t.arg.id({ description: "The network's id." }),
      discard: t.arg.boolean({
        required: false,
        defaultValue: false,
        description: "Drops the deliveries that it still owes, and its dead letters.",
      }),
    },
    resolve: (_, { id, discard }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.deleteNetwork(id, { discard: discard ?? false })).pipe(Effect.as(true)),
      )
    },
  }),
}))
