import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { Action, Actions, Blockwatcher, EventType, layerSqlite, Match, Provider } from "../../core/index.ts"
import evmRpc from "../../plugins/sources/evm-rpc/index.ts"
import { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../server/devnet/simulated/node.ts"
import { transfer, TRANSFER } from "../../server/devnet/simulated/transfer.ts"
import { type ReceivedSpan, spansOf } from "../support/otlp.ts"
import { startReceiver } from "../support/receiver.ts"
import { waitUntil } from "../support/scripted-source.ts"

const Transfers = Match.of("all", Schema.Struct({ args: Schema.Struct({ value: Schema.BigIntFromString }) }))

const Credited = EventType.make({ name: "credited", version: 1, schema: Schema.Struct({ amount: Schema.BigInt }) })

/** Emits an event, whose action calls a provider. */
const chainOfActions = (provider: string) => {
  const settle = Provider.operation({
    name: "settle",
    repeat: "keyed",
    input: Schema.BigInt,
    output: Schema.Null,
    call: (amount, { key, headers }) =>
      Effect.as(
        Effect.tryPromise(() =>
          fetch(provider, { method: "POST", headers: { ...headers, "idempotency-key": key }, body: `${amount}` }),
        ),
        null,
      ),
  })
  const credit = Action.make({
    name: "credit",
    on: Transfers,
    run: ({ event, emit }) => emit(Credited, { amount: event.payload.args.value }),
  })
  const pay = Action.make({
    name: "pay",
    on: Credited,
    calls: { settle },
    run: ({ event, calls }) => calls.settle(event.payload.amount),
  })
  return [credit, pay]
}

describe("the trace of a match that actions hear of", () => {
  it.live("leads from the block to the last provider call", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain()
      const node = yield* simulatedNode(chain)
      const [provider, collector] = [yield* startReceiver(), yield* startReceiver()]
      const tracing = OtlpTracer.layer({
        url: `${collector.origin}/v1/traces`,
        resource: { serviceName: "exchange" },
        exportInterval: "50 millis",
      }).pipe(Layer.provide([OtlpSerialization.layerProtobuf, FetchHttpClient.layer]))
      const config = { chain_id: 1, urls: [node.url], confirmations: 0, start: 1, poll_interval_ms: 20 }
      const program = Blockwatcher.layer({
        storage: layerSqlite({ path: ":memory:" }),
        plugins: [evmRpc],
        resources: {
          networks: [{ id: "net", module: "evm-rpc", config }],
          monitors: [{ id: "all", network: "net", selector: { kind: "event", event: TRANSFER }, sinks: ["actions"] }],
        },
        actions: chainOfActions(provider.origin),
      }).pipe(Layer.provide(tracing))
      const actions = Context.get(yield* Layer.build(program), Actions)
      chain.mine(1, [transfer(1, 2, 3, 7)])
      yield* waitUntil(
        "the last action has ended",
        Effect.map(actions.count({ action: "pay", state: "succeeded" }), (count) => count === 1).pipe(Effect.orDie),
      )
      const named = (name: string) => spansOf(collector.requests).find((span) => span.name === name)
      yield* waitUntil("its spans are exported", () => named("action pay") !== undefined)

      const byId = new Map(spansOf(collector.requests).map((span) => [span.spanId, span]))
      const [request] = provider.requests
      const [, trace, called] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(request!.headers["traceparent"] ?? "")!
      const path: Array<ReceivedSpan> = []
      for (let at = byId.get(called!); at !== undefined; at = byId.get(at.parentSpanId ?? "")) path.unshift(at)
      assert.deepStrictEqual(
        path.map(({ name }) => name),
        ["read blocks", "match", "mint", "action credit", "action pay", "call settle"],
      )
      assert.isNull(path[0]!.parentSpanId)
      assert.deepStrictEqual(new Set(path.map(({ traceId }) => traceId)), new Set([trace!]))
    }),
  )
})
