import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Gate } from "../../../../core/model/policy.ts"
import { at, batch, hit, monitor, network } from "../builders.ts"
import { all, settleAll, started, takeBack, type Test } from "./support.ts"

/** The part of the contract about retractions that died. */
export const deadRetractions = (test: Test): void =>
  test("a dead retraction of a survivor is not owed again while its match stands in a later life", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.change({
        putNetworks: [network("net")],
        putMonitors: [monitor("transfers", {}, { matchRevision: "r1" })],
      })
      const gate: Gate = { type: "threshold", count: 2, windowMs: 1000, by: null }
      const hitAt = (primary: number) => hit(at(primary), gate, { time: primary })
      // 1 and 20 are one emission; a fork takes 20 back, and the sink hears of neither retraction.
      const first = yield* storage.mint(owner, batch([hitAt(1), hitAt(20)]))
      yield* settleAll(owner, first.rows)
      yield* takeBack(owner, at(10, 9))
      yield* settleAll(owner, yield* storage.owed("net", "log", { ...all, kind: "retracted" }), "transient: sink down")
      // 1 and 12 are the next emission: 1 stands in its second life, and the sink has heard of it.
      const second = yield* storage.mint(owner, batch([hitAt(12)]))
      assert.deepStrictEqual(
        second.rows.map(({ matchId, life }) => [matchId, life]),
        [
          ["m-1-0", 2],
          ["m-12-0", 1],
        ],
      )
      yield* settleAll(owner, second.rows)
      yield* storage.mint(owner, batch([], { upTo: at(20, 9) }))
      // A fork behind both.
      yield* takeBack(owner, at(15, 9))
      const owed = yield* storage.owed("net", "log", { ...all, kind: "retracted" })
      assert.deepStrictEqual(
        owed.map(({ matchId, life }) => [matchId, life]),
        [["m-20-0", 1]],
      )
    }))
