import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type Hex, getAddress, getContractAddress, toEventSignature, toFunctionSignature } from "viem"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { SourceEvent } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { ACCOUNT, type Anvil, anvil } from "../../../support/anvil.ts"
import { EMITTER_BYTECODE } from "../../../support/emitter.ts"
import {
  encodeCall,
  encodeLog,
  everyAnonymous,
  everyType,
  functionOf,
  parseEvent,
  viemArguments,
  viemCallArguments,
} from "./abi-samples.ts"
import {
  drive,
  jsonOf,
  makeSource,
  outside,
  plain,
  quick,
  scan,
  secretsFrom,
  shapeOf,
  until,
  watching,
} from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const config = (node: Anvil) => ({ ...quick, chain_id: 31337, url: node.url })

const samples = everyType.map(([text, values]) => {
  const event = parseEvent(text)
  return { event, values, log: encodeLog(event, values) }
})

const argsOf = (selector: Selector, event: SourceEvent): unknown => plain(shapeOf(selector).fields, event.fields()).args

const scanned = Effect.fnUntraced(function* (node: Anvil, selector: Selector, block: number) {
  const source = yield* makeSource(config(node))
  const batches = yield* scan(source, block, block, watching(selector))
  return batches.flatMap(({ events }) => events)
})

/** Always reverts. */
const REVERTING = "0x60006000fd"
const REVERTER = "0x00000000000000000000000000000000000000aa"

describe("a real node", () => {
  live(
    "yields the events of a whole ABI as viem decodes them, in one monitor",
    Effect.gen(function* () {
      const node = yield* anvil()
      const emitter = yield* Effect.promise(() => node.deployEmitter())
      const block = yield* Effect.promise(() =>
        node.emit(
          emitter,
          samples.map(({ log }) => log),
        ),
      )
      const json: Selector = { kind: "event", address: emitter, abi: samples.map(({ event }) => ({ ...event })) }
      const texts: Selector = { kind: "event", event: everyType.map(([text]) => text) }
      for (const selector of [json, texts]) {
        const events = yield* scanned(node, selector, block)
        assert.strictEqual(events.length, samples.length)
        for (const [i, { event, log }] of samples.entries()) {
          const { name, signature } = events[i]!.fields()
          assert.deepStrictEqual([name, signature], [event.name, toEventSignature(event)])
          assert.deepStrictEqual(argsOf(selector, events[i]!), viemArguments(event, log), event.name)
        }
      }
    }),
  )

  live(
    "yields calls of functions of every ABI type as viem decodes them",
    Effect.gen(function* () {
      const node = yield* anvil()
      const emitter = yield* Effect.promise(() => node.deployEmitter())
      const calls = samples.map(({ event, values }) => {
        const abi = functionOf(event)
        return { abi, data: encodeCall(abi, values) }
      })
      const block = yield* Effect.promise(() => node.send(calls.map(({ data }) => ({ to: emitter, data }))))
      const selector: Selector = { kind: "call", address: emitter, abi: calls.map(({ abi }) => ({ ...abi })) }
      const events = yield* scanned(node, selector, block)
      assert.strictEqual(events.length, calls.length)
      for (const [i, { abi, data }] of calls.entries()) {
        const { name, signature, status, transaction } = events[i]!.fields()
        const { hash } = transaction as { readonly hash: Hex }
        const receipt = yield* Effect.promise(() => node.client.getTransactionReceipt({ hash }))
        assert.deepStrictEqual([name, signature, status], [abi.name, toFunctionSignature(abi), receipt.status])
        assert.deepStrictEqual(argsOf(selector, events[i]!), viemCallArguments(abi, data), abi.name)
      }
    }),
  )

  live(
    "yields anonymous events, and leaves out what cannot be one",
    Effect.gen(function* () {
      const node = yield* anvil()
      const emitter = yield* Effect.promise(() => node.deployEmitter())
      const anonymous = everyAnonymous.map(([text, values]) => {
        const event = parseEvent(text)
        return { event, log: encodeLog(event, values) }
      })
      const block = yield* Effect.promise(() =>
        node.emit(emitter, [...anonymous.map(({ log }) => log), ...samples.map(({ log }) => log)]),
      )
      const selector: Selector = { kind: "event", address: emitter, event: everyAnonymous.map(([text]) => text) }
      const events = yield* scanned(node, selector, block)
      assert.deepStrictEqual(
        events.map(({ cursor }) => cursor.secondary - 2 ** 20),
        anonymous.map((_, i) => i),
      )
      for (const [i, { event, log }] of anonymous.entries())
        assert.deepStrictEqual(argsOf(selector, events[i]!), viemArguments(event, log), event.name)
    }),
  )

  live(
    "yields transactions with creations and reverts, and the calls that reverted, as its receipts tell them",
    Effect.gen(function* () {
      const node = yield* anvil()
      yield* Effect.promise(() => node.client.setCode({ address: REVERTER, bytecode: REVERTING }))
      const nonce = yield* Effect.promise(() => node.client.getTransactionCount({ address: ACCOUNT }))
      const block = yield* Effect.promise(() =>
        node.send([
          { to: null, data: EMITTER_BYTECODE },
          { to: REVERTER, data: "0x12345678", value: 0n },
          { to: null, data: REVERTING },
          { to: "0x00000000000000000000000000000000000000bb", value: 10n ** 18n },
        ]),
      )
      const raw = yield* Effect.promise(() =>
        node.client.getBlock({ blockNumber: BigInt(block), includeTransactions: true }),
      )
      const transactions: Selector = { kind: "transaction", from: ACCOUNT }
      const shown = (yield* scanned(node, transactions, block)).map((event) => jsonOf(transactions, event))
      for (const [i, transaction] of raw.transactions.entries()) {
        const receipt = yield* Effect.promise(() => node.client.getTransactionReceipt({ hash: transaction.hash }))
        assert.deepStrictEqual(shown[i], {
          kind: "transaction",
          from: getAddress(transaction.from),
          to: transaction.to === null ? null : getAddress(transaction.to),
          value: `${transaction.value}`,
          input: transaction.input,
          status: receipt.status,
          creates: i === 0 ? getContractAddress({ from: ACCOUNT, nonce: BigInt(nonce) }) : null,
          transaction: { hash: transaction.hash, index: i },
          block: { number: block, hash: raw.hash, timestamp: Number(raw.timestamp) },
        })
      }
      assert.deepStrictEqual(
        shown.map(({ status }) => status),
        ["success", "reverted", "reverted", "success"],
      )
      const creations: Selector = { kind: "transaction", creation: true }
      assert.strictEqual((yield* scanned(node, creations, block)).length, 2)
      const large: Selector = { kind: "transaction", min_value: `${10n ** 18n}` }
      assert.deepStrictEqual(
        (yield* scanned(node, large, block)).map(({ cursor }) => cursor.secondary),
        [4],
      )
    }),
  )

  live(
    "yields blocks as it tells them, live and across a reorganisation",
    Effect.gen(function* () {
      const node = yield* anvil()
      const selector: Selector = { kind: "block" }
      const source = yield* makeSource(config(node))
      const { driven } = yield* drive(source, { interests: watching(selector) })
      yield* Effect.promise(() => node.send([{ to: ACCOUNT }, { to: ACCOUNT }]))
      yield* Effect.promise(() => node.mine(3))
      yield* until("the head is reached", () => driven.upTo === 4)
      for (const event of driven.events) {
        const number = BigInt(event.cursor.primary)
        const block = yield* Effect.promise(() => node.client.getBlock({ blockNumber: number }))
        assert.deepStrictEqual(jsonOf(selector, event).block, {
          number: Number(block.number),
          hash: block.hash,
          timestamp: Number(block.timestamp),
          parent_hash: block.parentHash,
          miner: getAddress(block.miner),
          transactions: block.transactions.length,
          gas_used: `${block.gasUsed}`,
          gas_limit: `${block.gasLimit}`,
          base_fee_per_gas: `${block.baseFeePerGas}`,
        })
      }
      yield* Effect.promise(() => node.reorg(2))
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.strictEqual((driven.outcome as any).from.primary, 2)
    }),
  )
})
