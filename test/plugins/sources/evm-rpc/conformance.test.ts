import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Effect, Layer } from "effect"
import { sourceConformance } from "../../../../core/plugin/conformance.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { SENDER } from "../../../../server/devnet/simulated/methods.ts"
import { SimulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer, transfer721 } from "../../../../server/devnet/simulated/transfer.ts"
import { outside, quick, secretsFrom } from "./driver.ts"

const chain = new SimulatedChain().mine(
  120,
  (number) => [transfer(1, 2, 3, number), transfer721(2, 2, 3, number)],
  (number) => [
    { to: addressOf(1), input: `0xa9059cbb${"0".repeat(63)}1${number.toString(16).padStart(64, "0")}` },
    { to: null, creates: addressOf(number), status: number % 2 === 0 ? "success" : "reverted" },
    ...(number % 3 === 0 ? [{ to: addressOf(5), value: number }] : []),
  ],
)

let node: SimulatedNode

describe("the source contract", async () => {
  node = await SimulatedNode.start(chain)
  beforeAll(() => expect(node.url).toContain("127.0.0.1"))
  afterAll(() => node.stop())

  const checks = sourceConformance({
    plugin: evmRpc,
    environment: Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({}))),
    config: { ...quick, url: node.url, max_block_range: 10 },
    refusedConfigs: [{}, { ...quick }, { ...quick, url: "env:NOT_SET" }, { ...quick, url: node.url, other: 1 }],
    selectors: [
      { kind: "event", event: TRANSFER },
      { kind: "event", event: "event Transfer(address indexed a, address indexed b, uint256 indexed id)" },
      { kind: "event", event: [TRANSFER, "event Transfer(address indexed a, address indexed b, uint256 indexed id)"] },
      {
        kind: "event",
        event: "event Any(bytes32 indexed a, address indexed b, uint256 indexed c, uint256 d) anonymous",
        address: addressOf(1),
      },
      { kind: "call", function: "function transfer(address to, uint256 value)" },
      { kind: "transaction", from: SENDER },
      { kind: "transaction", min_value: 50 },
      { kind: "block" },
    ],
    refusedSelectors: [
      { kind: "call", event: TRANSFER },
      { kind: "event", event: "Transfer" },
      { kind: "event" },
      { kind: "call" },
      { kind: "transaction", to: [] },
      { kind: "block", number: 1 },
      { kind: "log" },
    ],
    range: { from: 1, to: 120 },
  })
  for (const { name, effect } of checks) it(name, () => Effect.runPromise(effect))
})
