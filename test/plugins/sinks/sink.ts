import { NodeFileSystem } from "@effect/platform-node"
import { ConfigProvider, Effect, Layer, Result } from "effect"
import {
  digestBody,
  encodePayload,
  type Match,
  matchBody,
  retractedBody,
  type SinkEvent,
} from "../../../core/model/sink-event.ts"
import { decodeConfig } from "../../../core/plugin/decode-config.ts"
import { PluginRefused } from "../../../core/plugin/error.ts"
import { Egress, type EgressPolicy } from "../../../core/plugin/egress.ts"
import { Secrets } from "../../../core/plugin/secrets.ts"
import type { Delivery, SinkPlugin } from "../../../core/plugin/sink.ts"

/** What a plugin's `make` needs: real sockets under a policy, real files, and secrets of these variables. */
export const pluginServices = (
  env: Readonly<Record<string, string>> = {},
  policy: EgressPolicy = { loopback: true, allow: [] },
) =>
  Layer.mergeAll(Egress.layer(policy), Secrets.layer.pipe(Layer.provide(NodeFileSystem.layer))).pipe(
    Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    Layer.fresh,
  )

/** The problems of a config, as `path: message`, in the words that core shows. */
export const configProblems = (plugin: SinkPlugin, config: unknown): ReadonlyArray<string> =>
  Result.match(decodeConfig(plugin.config, config, plugin.sensitive), {
    onSuccess: () => [],
    onFailure: (problems) => problems.map(({ path, message }) => `${path}: ${message}`),
  })

/** Reads the config and makes the sink. */
export const makeSink = <Config>(plugin: SinkPlugin<Config>, config: unknown) =>
  Effect.fromResult(decodeConfig(plugin.config, config, plugin.sensitive)).pipe(
    Effect.mapError((problems) => new PluginRefused({ reason: JSON.stringify(problems) })),
    Effect.flatMap((decoded) => plugin.make(decoded)),
  )

export const aMatch = (id: string, event: Match["event"] = {}): Match => ({
  id,
  monitor: "large-transfers",
  network: "devnet",
  event: { kind: "event", name: "Transfer", args: { value: "115792089237316195423570985008687907853" }, ...event },
})

const deliveryOf = (id: string, body: string, rest: Partial<Delivery>): Delivery => ({
  id,
  body,
  attempt: 1,
  nonce: null,
  ...rest,
})

/** Each event together with the delivery that core would make of it. */
export const matchDelivery = (match: Match, rest: Partial<Delivery> = {}): readonly [SinkEvent, Delivery] => [
  { type: "match", ...match },
  deliveryOf(match.id, matchBody(encodePayload(match)), rest),
]

export const retractedDelivery = (id: string): readonly [SinkEvent, Delivery] => [
  { type: "retracted", match_id: id },
  deliveryOf(`${id}-r`, retractedBody(id), {}),
]

export const digestDelivery = (matches: ReadonlyArray<Match>): readonly [SinkEvent, Delivery] => [
  { type: "digest", matches },
  deliveryOf("digest-1", digestBody(matches.map(encodePayload)), {}),
]
