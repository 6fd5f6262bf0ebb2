import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Effect, Layer } from "effect"
import { sourceConformance } from "../../../../core/plugin/conformance.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { SimulatedChain } from "../../../support/simulator/chain.ts"
import { SimulatedNode } from "../../../support/simulator/node.ts"
import { TRANSFER, transfer, transfer721 } from "../../../support/simulator/transfer.ts"
import { outside, quick, secretsFrom } from "./driver.ts"

const chain = new SimulatedChain().mine(120, (number) => [transfer(1, 2, 3, number), transfer721(2, 2, 3, number)])

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
    ],
    refusedSelectors: [{ kind: "call", event: TRANSFER }, { kind: "event", event: "Transfer" }, { kind: "event" }],
    range: { from: 1, to: 120 },
  })
  for (const { name, effect } of checks) it(name, () => Effect.runPromise(effect))
})
