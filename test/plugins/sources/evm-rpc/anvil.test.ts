import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { endOf, startOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { type Anvil, anvil } from "../../../support/anvil.ts"
import { encodeLog, everyType, parseEvent, viemArguments } from "./abi-samples.ts"
import { drive, makeSource, outside, plain, quick, scan, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const COUNTED = "event Counted(uint256 indexed number, string text)"

const countedLog = (number: number) => encodeLog(parseEvent(COUNTED), [BigInt(number), `number ${number}`])

const interests = (event: string, version = 1) => ({
  version,
  interests: [{ id: "watch", selector: { kind: "event" as const, event } }],
})

const config = (node: Anvil) => ({ ...quick, chain_id: 31337, url: node.url })

const numbers = (events: ReadonlyArray<{ fields: () => any }>): ReadonlyArray<number> =>
  events.map((event) => Number(event.fields().args.number))

describe("a real node", () => {
  live(
    "yields events of every ABI type as viem decodes them",
    Effect.gen(function* () {
      const node = yield* anvil()
      const emitter = yield* Effect.promise(() => node.deployEmitter())
      const source = yield* makeSource(config(node))
      assert.deepStrictEqual(yield* source.start, startOf(0))
      for (const [text, values] of everyType) {
        const event = parseEvent(text)
        const log = encodeLog(event, values)
        const block = yield* Effect.promise(() => node.emit(emitter, [log]))
        const batches = yield* scan(source, block, block, interests(text))
        const [found, ...more] = batches.flatMap(({ events }) => events)
        assert.isDefined(found, text)
        assert.strictEqual(more.length, 0)
        const described = evmRpc.describe({ kind: "event", event: text })
        if ("problems" in described) throw new Error("refused")
        const fields = plain(described.fields, found!.fields())
        const [raw] = yield* Effect.promise(() => node.client.getLogs({ fromBlock: BigInt(block) }))
        assert.deepStrictEqual(fields.args, viemArguments(event, log))
        const header = yield* Effect.promise(() => node.client.getBlock({ blockNumber: BigInt(block) }))
        assert.deepStrictEqual(
          { ...fields, args: null },
          {
            kind: "event",
            name: event.name,
            signature: fields.signature,
            address: emitter.toLowerCase(),
            args: null,
            log: { index: 0 },
            transaction: { hash: raw!.transactionHash, index: 0 },
            block: { number: block, hash: header.hash, timestamp: Number(header.timestamp) },
          },
        )
      }
    }),
  )

  live(
    "is followed live, several logs a block",
    Effect.gen(function* () {
      const node = yield* anvil()
      const emitter = yield* Effect.promise(() => node.deployEmitter())
      const source = yield* makeSource(config(node))
      const { driven } = yield* drive(source, { interests: interests(COUNTED) })
      yield* Effect.promise(() => node.emit(emitter, [1, 2, 3].map(countedLog)))
      yield* until("three events", () => driven.events.length === 3)
      yield* Effect.promise(() => node.mine(200))
      yield* Effect.promise(() => node.emit(emitter, [4, 5].map(countedLog)))
      yield* until("five events", () => driven.events.length === 5)
      assert.deepStrictEqual(numbers(driven.events), [1, 2, 3, 4, 5])
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  live(
    "announces its blocks over its WebSocket",
    Effect.gen(function* () {
      const node = yield* anvil()
      const emitter = yield* Effect.promise(() => node.deployEmitter())
      const source = yield* makeSource({
        ...config(node),
        ws_url: node.url.replace("http:", "ws:"),
        poll_interval_ms: 3_600_000,
      })
      const { driven } = yield* drive(source, { interests: interests(COUNTED) })
      const emit = Effect.promise(() => node.emit(emitter, [countedLog(1)]))
      // The first blocks may come before the subscription.
      yield* Effect.raceFirst(
        until("events", () => driven.events.length >= 3),
        Effect.forever(Effect.andThen(emit, Effect.sleep("50 millis"))),
      )
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  for (const depth of [1, 3, 20])
    live(
      `that reorganises ${depth} deep invalidates from the block before, and the rest is read again`,
      Effect.gen(function* () {
        const node = yield* anvil()
        const emitter = yield* Effect.promise(() => node.deployEmitter())
        for (let number = 1; number <= 25; number++)
          yield* Effect.promise(() => node.emit(emitter, [countedLog(number)]))
        const source = yield* makeSource(config(node))
        const first = yield* drive(source, { interests: interests(COUNTED) })
        yield* until("25 events", () => first.driven.events.length === 25)
        const head = first.driven.upTo
        yield* Effect.promise(() => node.reorg(depth))
        yield* until("the run ends", () => first.driven.exit !== undefined)
        const from = endOf(head - depth)
        assert.deepStrictEqual((first.driven.outcome as any).from, from)

        const anchors = first.driven.anchors.filter(({ primary }) => primary <= from.primary)
        const second = yield* drive(source, { cursor: from, anchors, interests: interests(COUNTED) })
        yield* Effect.promise(() => node.emit(emitter, [countedLog(99)]))
        yield* until("the new block", () => second.driven.events.length === 1)
        assert.deepStrictEqual(numbers(second.driven.events), [99])
      }),
    )

  live(
    "that reorganised while nobody watched is invalidated at the restart",
    Effect.gen(function* () {
      const node = yield* anvil()
      yield* Effect.promise(() => node.mine(30))
      const source = yield* makeSource(config(node))
      const first = yield* drive(source, { interests: interests(COUNTED) })
      yield* until("the head is reached", () => first.driven.upTo === 30)
      yield* first.stop
      yield* Effect.promise(() => node.reorg(5))
      const second = yield* drive(source, {
        cursor: endOf(30),
        anchors: first.driven.anchors,
        interests: interests(COUNTED),
      })
      yield* until("the run ends", () => second.driven.exit !== undefined)
      assert.deepStrictEqual((second.driven.outcome as any).from, endOf(25))
    }),
  )
})
