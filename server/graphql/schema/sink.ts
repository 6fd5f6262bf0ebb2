import { Effect } from "effect"
import { Resources, type SinkState, type SinkView } from "../../../core/engine/resources.ts"
import type { Aggregate, Retry, Throttle } from "../../../core/model/policy.ts"
import { builder } from "../builder.ts"
import { toDefinition, toPutOptions } from "../input.ts"
import { run } from "../run.ts"

const states = {
  RUNNING: { description: "Delivers." },
  PAUSED: {
    description:
      "Rests until `resumeSink`; `error` says why. Its matches become dead letters, or wait in a durable buffer.",
  },
  FAILED: { description: "Cannot be built from its config; `error` says why. Networks wait for it." },
} as const satisfies Record<SinkState, { description: string }>

const SinkStateType = builder.enumType("SinkState", { description: "What a sink does at present.", values: states })

const BufferTypeType = builder.enumType("BufferType", {
  description: "Where deliveries wait that the receiver does not take at present.",
  values: {
    MEMORY: { description: "A bounded queue: when it is full the network waits." },
    DURABLE: {
      description: "Rows in the database: the network goes on, and transient failures are tried without end.",
    },
  } as const,
})

const RetryType = builder.objectRef<Retry>("Retry").implement({
  description: "How often, and how far apart, a delivery is tried. Delays are random below a bound that doubles.",
  fields: (t) => ({
    maxAttempts: t.exposeInt("maxAttempts", {
      description: "Attempts in all, before a delivery becomes a dead letter.",
    }),
    initialBackoffMs: t.exposeInt("initialBackoffMs", {
      description: "The bound of the first delay, in milliseconds.",
    }),
    maxBackoffMs: t.exposeInt("maxBackoffMs", { description: "The bound that no delay exceeds, in milliseconds." }),
  }),
})

const RetryInput = builder.inputType("RetryInput", {
  description: "How often, and how far apart, a delivery is tried. What is left out has its default.",
  fields: (t) => ({
    maxAttempts: t.int({ required: false, description: "Attempts in all. Default 8." }),
    initialBackoffMs: t.int({
      required: false,
      description: "The bound of the first delay, in milliseconds. Default 200.",
    }),
    maxBackoffMs: t.int({
      required: false,
      description: "The bound that no delay exceeds, in milliseconds. Default 30000.",
    }),
  }),
})

const ThrottleType = builder.objectRef<Throttle>("Throttle").implement({
  description:
    "The most deliveries that each network makes through a sink in a window of time. What exceeds it is a dead letter at once, or waits in a durable buffer; retractions are exempt.",
  fields: (t) => ({
    maxDeliveries: t.exposeInt("maxDeliveries", { description: "How many." }),
    windowMs: t.exposeInt("windowMs", {
      description: "The length of the window, in milliseconds; it opens with the first delivery.",
    }),
  }),
})

const ThrottleInput = builder.inputType("ThrottleInput", {
  description:
    "The most deliveries that each network makes through a sink in a window of time. What exceeds it is a dead letter at once.",
  fields: (t) => ({
    maxDeliveries: t.int({ required: false, description: "How many. Default 60." }),
    windowMs: t.int({ required: false, description: "The length of the window, in milliseconds. Default 60000." }),
  }),
})

const AggregateType = builder.objectRef<Aggregate>("Aggregate").implement({
  description: "Collects matches and delivers them together as a digest.",
  fields: (t) => ({
    windowMs: t.exposeInt("windowMs", {
      description: "The longest that a match waits for others, in milliseconds; the checkpoint waits with it.",
    }),
    maxBatch: t.exposeInt("maxBatch", {
      description: "The most matches in one digest: so many are delivered at once.",
    }),
  }),
})

const AggregateInput = builder.inputType("AggregateInput", {
  description: "Collects matches and delivers them together as a digest.",
  fields: (t) => ({
    windowMs: t.int({
      required: false,
      description: "The longest that a match waits for others, in milliseconds. Default 30000, at most a day.",
    }),
    maxBatch: t.int({ required: false, description: "The most matches in one digest. Default 100, at most 10000." }),
  }),
})

export const SinkType = builder.objectRef<SinkView>("Sink").implement({
  description: "Where matches are delivered: a sink plugin with its config and its delivery policies.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "Its name, chosen by whoever made it." }),
    module: t.exposeString("module", { description: "The sink plugin, such as `webhook`." }),
    config: t.expose("config", {
      type: "JSON",
      description: "The plugin's config. Sensitive fields are masked; a put of the masked value keeps the stored one.",
    }),
    retry: t.field({ type: RetryType, description: "How deliveries are retried.", resolve: (sink) => sink.retry }),
    throttle: t.field({
      type: ThrottleType,
      nullable: true,
      description: "The most deliveries in a window of time; null is no limit.",
      resolve: (sink) => sink.throttle,
    }),
    aggregate: t.field({
      type: AggregateType,
      nullable: true,
      description: "How matches are collected into digests; null delivers each alone.",
      resolve: (sink) => sink.aggregate,
    }),
    concurrency: t.exposeInt("concurrency", {
      description: "Deliveries of a network at a time. Above 1, order between matches is given up.",
    }),
    buffer: t.expose("buffer", { type: BufferTypeType, description: "Where deliveries wait." }),
    state: t.expose("state", { type: SinkStateType, description: "What it does at present." }),
    error: t.exposeString("error", {
      nullable: true,
      description: "Why it is FAILED or PAUSED.",
    }),
    revision: t.exposeString("revision", { description: "Changes with every change; see `ifRevision`." }),
  }),
})

builder.queryFields((t) => ({
  sinks: t.field({
    type: [SinkType],
    description: "All sinks.",
    resolve: async (_, __, { views }) => [...(await views.sinks)],
  }),
  sink: t.field({
    type: SinkType,
    nullable: true,
    description: "One sink, or null if there is none of this id.",
    args: { id: t.arg.id({ description: "The sink's id." }) },
    resolve: async (_, { id }, { views }) => (await views.sinks).find((sink) => sink.id === id),
  }),
}))

const SinkInput = builder.inputType("SinkInput", {
  description: "A sink as it shall be.",
  fields: (t) => ({
    id: t.id({ description: "1 to 128 letters, digits, '-', '_' or '.', starting with a letter or digit." }),
    module: t.string({ description: "The sink plugin, such as `webhook`; `plugins` lists them." }),
    config: t.field({
      type: "JSON",
      description: "The plugin's config. Secrets are references: `env:NAME`, `file:PATH`.",
    }),
    retry: t.field({ type: RetryInput, required: false, description: "How deliveries are retried." }),
    throttle: t.field({
      type: ThrottleInput,
      required: false,
      description: "The most deliveries in a window of time.",
    }),
    aggregate: t.field({ type: AggregateInput, required: false, description: "Collects matches into digests." }),
    concurrency: t.int({
      required: false,
      defaultValue: 1,
      description: "Deliveries of a network at a time, at most 100.",
    }),
    buffer: t.field({
      type: BufferTypeType,
      required: false,
      defaultValue: "MEMORY",
      description: "Where deliveries wait.",
    }),
    ifRevision: t.string({ required: false, description: "CONFLICT unless the stored sink has this revision." }),
    validateOnly: t.boolean({
      required: false,
      defaultValue: false,
      description: "Checks everything and answers what would be stored; stores nothing.",
    }),
  }),
})

builder.mutationFields((t) => ({
  putSink: t.field({
    type: SinkType,
    description: "Makes a sink, or changes it. A refused input answers INVALID with all its problems.",
    args: { input: t.arg({ type: SinkInput, description: "The sink as it shall be." }) },
    resolve: (_, { input }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.putSink(toDefinition(input), toPutOptions(input))),
      )
    },
  }),
  pauseSink: t.field({
    type: SinkType,
    description:
      "Lets a sink rest, for all networks, until `resumeSink`: its matches become dead letters that can be replayed, or wait in a durable buffer. A put does not end it.",
    args: { id: t.arg.id({ description: "The sink's id." }) },
    resolve: (_, { id }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.pauseSink(id)),
      )
    },
  }),
  resumeSink: t.field({
    type: SinkType,
    description: "Lets a sink go on, whether it was paused by hand or because its receiver answered that it is gone.",
    args: { id: t.arg.id({ description: "The sink's id." }) },
    resolve: (_, { id }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.resumeSink(id)),
      )
    },
  }),
  deleteSink: t.boolean({
    description:
      "Deletes a sink. CONFLICT while monitors name it, or while deliveries to it are owed unless `discard`.",
    args: {
      id: t.arg.id({ description: "The sink's id." }),
      discard: t.arg.boolean({
        required: false,
        defaultValue: false,
        description: "Drops the deliveries that it is still owed, and its dead letters.",
      }),
    },
    resolve: (_, { id, discard }, context) => {
      context.views.forget()
      return run(
        context,
        Resources.use((resources) => resources.deleteSink(id, { discard: discard ?? false })).pipe(Effect.as(true)),
      )
    },
  }),
}))
