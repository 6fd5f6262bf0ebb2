import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { encodeFunctionData, getAddress, parseAbi } from "viem"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { SourceEvent } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import type { SimulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf } from "../../../../server/devnet/simulated/transfer.ts"
import { makeSource, outside, quick, scan, secretsFrom, watching } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

/** A test that has what a source is built with. */
export const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

export const TRANSFER_CALL = "function transfer(address to, uint256 value)"

/** The input of a call of `transfer`. */
export const callData = (to: string, value: number) =>
  encodeFunctionData({ abi: parseAbi([TRANSFER_CALL]), args: [getAddress(to), BigInt(value)] })

/** A call of the token 1 in each block, whose value is the block's number; it reverts in odd blocks. */
export const callEach = (number: number) => [
  {
    to: addressOf(1),
    input: callData(addressOf(2), number),
    status: number % 2 === 0 ? ("success" as const) : ("reverted" as const),
  },
]

/** The calls of `callEach`. */
export const callSelector: Selector = { kind: "call", function: TRANSFER_CALL, address: addressOf(1) }

/** The events of a monitor in the blocks `from` to `to`. */
export const scanned = Effect.fnUntraced(function* (node: SimulatedNode, selector: Selector, from: number, to: number) {
  const source = yield* makeSource({ ...quick, url: node.url })
  const batches = yield* scan(source, from, to, watching(selector))
  return batches.flatMap(({ events }) => events)
})

/** `block:secondary` of each event. */
export const places = (events: ReadonlyArray<SourceEvent>) =>
  events.map(({ cursor }) => `${cursor.primary}:${cursor.secondary}`)
