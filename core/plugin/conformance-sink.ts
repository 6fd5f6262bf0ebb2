import { Effect, Layer, Ref } from "effect"
import { digestBody, encodePayload, type Match, matchBody, retractedBody, type SinkEvent } from "../model/sink-event.ts"
import {
  accepted,
  broken,
  check,
  type ConformanceCheck,
  type ConformanceEnvironment,
  describe,
  interruptPromptly,
  must,
  nothingOutside,
  problemsWith,
  promptly,
  refused,
} from "./conformance-check.ts"
import { Egress } from "./egress.ts"
import type { DeliveryError } from "./error.ts"
import type { Delivery, SinkPlugin } from "./sink.ts"

export interface SinkConformance {
  readonly plugin: SinkPlugin
  readonly environment?: ConformanceEnvironment
  /** JSON of a config whose receiver takes everything. */
  readonly config: unknown
  /** Configs that the schema or `make` must refuse. */
  readonly refusedConfigs: ReadonlyArray<unknown>
  /** Configs whose receivers fail in a known way, each with the class that a delivery must fail with. */
  readonly failures: ReadonlyArray<{
    readonly name: string
    readonly config: unknown
    readonly expected: DeliveryError["_tag"]
  }>
  /** A config whose receiver never answers, where there can be one: a delivery to it must be interruptible. */
  readonly stalled?: unknown
  /** Secrets of the configs above: none of them may stand in the reason of a failure. */
  readonly secrets?: ReadonlyArray<string>
}

/** The contract of sinks, as checks for any test runner. */
export const sinkConformance = (options: SinkConformance): ReadonlyArray<ConformanceCheck> => {
  const { plugin, environment = nothingOutside, config, refusedConfigs, failures, stalled, secrets = [] } = options

  const build = (json: unknown) =>
    accepted("the config", plugin.config, json, plugin.sensitive).pipe(Effect.flatMap((value) => plugin.make(value)))

  const deliverTo = (json: unknown) =>
    Effect.flatMap(build(json), (sink) => sink.deliver(events.match.event, events.match.delivery))

  const delivers = (kind: SinkEvent["type"]) =>
    check(
      `delivers a ${kind}, and the same again on a second attempt`,
      environment,
      Effect.gen(function* () {
        const sink = yield* build(config)
        const { event, delivery } = events[kind]
        yield* sink.deliver(event, delivery)
        yield* sink.deliver(event, { ...delivery, attempt: 2, nonce: "replay-1" })
      }),
    )

  return [
    check(
      "refuses wrong configs and says why",
      environment,
      refused(
        "a config",
        refusedConfigs,
        problemsWith(plugin.config, (value) =>
          plugin.make(value).pipe(
            Effect.as([]),
            Effect.catch((error) => Effect.succeed([{ path: "", message: error.message }])),
          ),
        ),
      ),
    ),
    check(
      "sends nothing while it is built, and states the longest time of an attempt",
      environment,
      Effect.gen(function* () {
        const requests = yield* Ref.make(0)
        const count = Ref.update(requests, (n) => n + 1)
        const egress = yield* Egress
        const counted = Layer.succeed(Egress, {
          request: (request) => Effect.andThen(count, egress.request(request)),
          openSocket: (request) => Effect.andThen(count, egress.openSocket(request)),
        })
        const sink = yield* build(config).pipe(Effect.provide(counted))
        const sent = yield* Ref.get(requests)
        yield* must(sent === 0, `make sent ${sent} requests; a sink sends in deliver alone`)
        yield* must(
          Number.isInteger(sink.timeoutMs) && sink.timeoutMs > 0,
          `timeoutMs must be a positive number of whole ms, not ${sink.timeoutMs}`,
        )
      }),
    ),
    check(
      "can be built several times at once, and each is released promptly",
      environment,
      Effect.gen(function* () {
        yield* promptly("building and releasing it", Effect.scoped(Effect.all([build(config), build(config)])))
      }),
    ),
    delivers("match"),
    delivers("retracted"),
    delivers("digest"),
    ...failures.map(({ name, config, expected }) =>
      check(
        `fails as ${expected}: ${name}`,
        environment,
        Effect.gen(function* () {
          const error = yield* deliverTo(config).pipe(
            Effect.flip,
            Effect.mapError(() => broken("the delivery succeeded")),
          )
          yield* must(error._tag === expected, `the delivery failed as ${describe(error)}`)
          yield* must(error.message.trim() !== "", "the failure gives no reason")
          yield* must(
            secrets.every((secret) => !error.message.includes(secret)),
            "the reason of the failure shows a secret",
          )
        }),
      ),
    ),
    ...(stalled === undefined
      ? []
      : [
          check(
            "ends promptly when a delivery is interrupted",
            environment,
            Effect.gen(function* () {
              const sink = yield* build(stalled)
              const fiber = yield* Effect.forkChild(sink.deliver(events.match.event, events.match.delivery), {
                startImmediately: true,
              })
              yield* Effect.sleep("100 millis")
              yield* must(fiber.pollUnsafe() === undefined, "the delivery to the stalled receiver ended by itself")
              yield* interruptPromptly(fiber)
            }),
          ),
        ]),
  ]
}

const matchOf = (id: string): Match => ({
  id: id.repeat(64),
  monitor: "conformance",
  network: "conformance",
  event: { kind: "event", text: 'quotes " and \n lines, \u{1f9ea}', amount: "115792089237316195423570985008687907853" },
})

const deliveryOf = (id: string, body: string): Delivery => ({ id, body, attempt: 1, nonce: null })

const events: Record<SinkEvent["type"], { readonly event: SinkEvent; readonly delivery: Delivery }> = {
  match: {
    event: { type: "match", ...matchOf("a") },
    delivery: deliveryOf("a".repeat(64), matchBody(encodePayload(matchOf("a")))),
  },
  retracted: {
    event: { type: "retracted", match_id: "a".repeat(64) },
    delivery: deliveryOf(`${"a".repeat(64)}-r`, retractedBody("a".repeat(64))),
  },
  digest: {
    event: { type: "digest", matches: [matchOf("b"), matchOf("c")] },
    delivery: deliveryOf("d".repeat(64), digestBody([matchOf("b"), matchOf("c")].map(encodePayload))),
  },
}
