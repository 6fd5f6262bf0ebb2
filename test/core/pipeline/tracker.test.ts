import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import { ProgressTracker } from "../../../core/pipeline/tracker.ts"

const at = (primary: number) => ({ primary, secondary: 0 })

describe("the progress tracker", () => {
  it("advances over positions without matches at once", () => {
    const tracker = new ProgressTracker()
    for (let i = 1; i <= 10_000; i++) tracker.begin(at(i), 0)
    assert.deepStrictEqual(tracker.watermark, at(10_000))
    assert.strictEqual(tracker.inFlight, 0)
  })

  it("is held by a middle position until its last delivery is done", () => {
    const tracker = new ProgressTracker()
    const first = tracker.begin(at(1), 1)
    const middle = tracker.begin(at(2), 2)
    const last = tracker.begin(at(3), 1)
    tracker.complete(last)
    tracker.complete(first)
    assert.deepStrictEqual(tracker.watermark, at(1))
    tracker.complete(middle)
    assert.deepStrictEqual(tracker.watermark, at(1))
    tracker.complete(middle)
    assert.deepStrictEqual(tracker.watermark, at(3))
  })

  it("stalls for good behind a delivery that never completes", () => {
    const tracker = new ProgressTracker()
    tracker.begin(at(1), 0)
    tracker.begin(at(2), 1)
    for (let i = 3; i <= 5_000; i++) tracker.complete(tracker.begin(at(i), 1))
    assert.deepStrictEqual(tracker.watermark, at(1))
    assert.strictEqual(tracker.inFlight, 1)
  })

  it.effect.prop(
    "never covers an unfinished match, and covers every finished prefix, whatever the order of completion",
    { opens: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))), seed: Schema.Int },
    ({ opens, seed }) =>
      Effect.sync(() => {
        const tracker = new ProgressTracker()
        const left = [...opens]
        const slots = opens.map((open, i) => tracker.begin(at(i + 1), open))
        const pending = slots.flatMap((slot, i) => Array.from({ length: opens[i]! }, () => ({ slot, i })))
        let random = seed >>> 0
        const prefix = () => {
          const open = left.findIndex((n) => n > 0)
          const length = open === -1 ? left.length : open
          return length === 0 ? null : at(length)
        }
        assert.deepStrictEqual(tracker.watermark, prefix())
        while (pending.length > 0) {
          random = (random * 1_664_525 + 1_013_904_223) >>> 0
          const [{ slot, i }] = pending.splice(random % pending.length, 1) as [(typeof pending)[number]]
          left[i]!--
          tracker.complete(slot)
          assert.deepStrictEqual(tracker.watermark, prefix())
          assert.strictEqual(tracker.inFlight, left.filter((n) => n > 0).length)
        }
      }),
  )
})
