import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readSeed } from "../../../core/engine/seed-json.ts"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../../../core/model/resource.ts"
import { decodeConfig } from "../../../core/plugin/decode-config.ts"
import { compilePredicate } from "../../../core/predicate/predicate.ts"
import evmRpc from "../../../plugins/sources/evm-rpc/index.ts"
import log from "../../../plugins/sinks/log/index.ts"
import { TOKEN_ADDRESS } from "../../../server/devnet/token.ts"

const folder = (seeds: string, name: string) => new URL(`../../../${seeds}/${name}/`, import.meta.url)

const read = <A>(seeds: string, kind: "network" | "monitor" | "sink", schema: Schema.Codec<A, any>): ReadonlyArray<A> =>
  readdirSync(folder(seeds, `${kind}s`)).map((name) => {
    const text = readFileSync(new URL(name, folder(seeds, `${kind}s`)), "utf8")
    const seed = Result.getOrThrow(readSeed({ kind, path: name, text }))
    return Result.getOrThrow(decodeConfig(schema, seed.input))
  })

describe.each(["seeds", "seeds-simulated"])("the files in %s", (seeds) => {
  const networks = read(seeds, "network", NetworkDefinition)
  const monitors = read(seeds, "monitor", MonitorDefinition)
  const sinks = read(seeds, "sink", SinkDefinition)

  it("have configs that their plugins accept", () => {
    for (const { module, config } of networks) {
      assert.strictEqual(module, evmRpc.name)
      const { confirmations } = Result.getOrThrow(decodeConfig(evmRpc.config, config))
      assert.strictEqual(confirmations, 0, "a reorganisation of the newest block shall reach what was delivered")
    }
    for (const { module, config } of sinks) {
      assert.strictEqual(module, log.name)
      Result.getOrThrow(decodeConfig(log.config, config))
    }
  })

  it("watch the devnet's token, with predicates that compile and sinks and a network that exist", () => {
    assert.isAtLeast(monitors.length, 3)
    for (const { id, network, selector, predicate, sinks: targets } of monitors) {
      assert.include(
        networks.map((other) => other.id),
        network,
        id,
      )
      for (const target of targets) {
        assert.include(
          sinks.map((sink) => sink.id),
          target,
          id,
        )
      }
      assert.deepStrictEqual(selector["address"], [TOKEN_ADDRESS])
      const shape = evmRpc.describe(Result.getOrThrow(decodeConfig(evmRpc.selector, selector)))
      assert.notProperty(shape, "problems", id)
      if ("problems" in shape || predicate === null) continue
      assert.notProperty(compilePredicate(predicate, { ...shape, address: evmRpc.address }), "problems", id)
    }
  })
})
