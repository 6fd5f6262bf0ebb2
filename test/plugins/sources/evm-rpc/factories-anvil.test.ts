import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { endOf } from "../../../../core/model/cursor.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { anvil } from "../../../support/anvil.ts"
import { emitterCall } from "../../../support/emitter.ts"
import { encodeLog, parseEvent } from "./abi-samples.ts"
import { drive, makeSource, positions, quick, scan, until, watching } from "./driver.ts"
import { live } from "./selector-support.ts"

const MADE = "event Made(address indexed by, string name, address child)"
const USED = "event Used(uint256 number)"

describe("a real node", () => {
  live(
    "tells of the contracts of a factory, and takes them back with its blocks",
    Effect.gen(function* () {
      const node = yield* anvil()
      const deploy = Effect.promise(() => node.deployEmitter())
      const [factory, child] = [yield* deploy, yield* deploy]
      const made = encodeLog(parseEvent(MADE), [factory, "a child", child])
      const used = encodeLog(parseEvent(USED), [1n])
      const selector: Selector = {
        kind: "event",
        event: USED,
        address: { factory: { address: factory, event: MADE, param: "child", args: { by: factory } } },
      }
      const source = yield* makeSource({ ...quick, chain_id: 31337, url: node.url })
      const first = yield* drive(source, { interests: watching(selector) })
      const block = yield* Effect.promise(() =>
        node.send([
          { to: child, data: emitterCall(used) },
          { to: factory, data: emitterCall(made) },
          { to: child, data: emitterCall(used) },
        ]),
      )
      yield* Effect.promise(() => node.emit(child, [used, used]))
      yield* until("the child is watched", () => first.driven.upTo === block + 1)
      const expected = [`${block}:2`, `${block + 1}:0`, `${block + 1}:1`]
      assert.deepStrictEqual(positions(first.driven.events), expected)
      const scanned = yield* scan(source, 0, block + 1, watching(selector))
      assert.deepStrictEqual(positions(scanned.flatMap(({ events }) => events)), expected)

      yield* Effect.promise(() => node.reorg(2))
      yield* until("the fork is seen", () => first.driven.exit !== undefined)
      assert.deepStrictEqual(first.driven.outcome, { ...first.driven.outcome!, from: endOf(block - 1) } as object)
      const kept = first.driven.batches.flatMap(({ records = [] }) => records)
      const second = yield* drive(source, {
        interests: watching(selector),
        cursor: endOf(block - 1),
        anchors: first.driven.anchors.filter(({ primary }) => primary < block),
        records: kept.filter(({ cursor }) => cursor.primary < block),
      })
      yield* Effect.promise(() => node.emit(child, [used]))
      yield* until("the fork is read", () => second.driven.upTo === block + 2)
      assert.deepStrictEqual(positions(second.driven.events), [])
    }),
  )
})
