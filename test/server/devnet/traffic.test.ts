import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LARGE, type Move, movesOf } from "../../../server/devnet/traffic.ts"

const HOLDERS = [1, 2, 3, 4, 5].map((n): `0x${string}` => `0x${String(n).repeat(40)}`)

const isLarge = ({ kind, from, to, value }: Move) => kind === "transfer" && from !== to && value >= LARGE
const isSmall = ({ kind, from, to, value }: Move) => kind === "transfer" && from !== to && value < LARGE
const isToSelf = ({ kind, from, to }: Move) => kind === "transfer" && from === to
const isApproval = ({ kind }: Move) => kind === "approve"

describe("the devnet's traffic", () => {
  it.effect("holds every kind of move within any minute, and one each second", () =>
    Effect.gen(function* () {
      const seconds = yield* Effect.forEach(
        Array.from({ length: 60 }, (_, second) => second),
        (second) => movesOf(second, HOLDERS),
      )
      for (const moves of seconds) assert.isTrue(moves.some(isSmall))
      const all = seconds.flat()
      for (const kind of [isLarge, isToSelf, isApproval]) assert.isAtLeast(all.filter(kind).length, 10)
      assert.strictEqual(new Set(all.map(({ from }) => from)).size, HOLDERS.length)
      assert.isTrue(all.every(({ value }) => value > 0n))
    }),
  )
})
