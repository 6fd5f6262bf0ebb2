import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, batch, match } from "../builders.ts"
import { started, type Test } from "./support.ts"

/** The part of the contract about feed. */
export const feed = (test: Test): void => {
  test("pages hold what was shown behind a position, up to a bound, for one monitor or all", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(
        owner,
        batch([1, 2, 3, 4].map((n) => match(at(n), n % 2 === 0 ? { monitor: "even", time: null } : {}))),
      )
      const positions = (page: { after: number; limit: number; upTo?: number; monitor?: string }) =>
        Effect.map(storage.feedPage({ network: "net", kinds: ["match"], standing: true, ...page }), (items) =>
          items.map(({ position }) => position),
        )
      assert.deepStrictEqual(yield* positions({ after: 0, limit: 3 }), [1, 2, 3])
      assert.deepStrictEqual(yield* positions({ after: 3, limit: 3 }), [4])
      assert.deepStrictEqual(yield* positions({ after: 0, limit: 9, upTo: 2 }), [1, 2])
      assert.deepStrictEqual(yield* positions({ after: 0, limit: 9, monitor: "even" }), [2, 4])
      assert.deepStrictEqual(yield* storage.feedPage({ network: "net", kinds: ["retracted"], after: 0, limit: 9 }), [])
      const [second] = yield* storage.feedPage({ network: "net", kinds: ["match"], after: 1, limit: 1 })
      assert.deepStrictEqual(second, {
        kind: "match",
        network: "net",
        position: 2,
        life: 1,
        emission: null,
        late: false,
        matchId: "m-2-0",
        monitor: "even",
        cursor: at(2),
        time: null,
        payload: match(at(2)).payload,
      })
      assert.deepStrictEqual(yield* storage.feedStates(), [{ network: "net", position: 4, trims: [] }])
      assert.deepStrictEqual(yield* storage.feedStates("other"), [])
    }))
}
