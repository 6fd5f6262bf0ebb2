import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { ThrottleWindow } from "../../../core/pipeline/throttle.ts"

const three = { maxDeliveries: 3, windowMs: 1_000 }

describe("a throttle's window", () => {
  it("opens with the first delivery that it lets in, and has its whole budget again when it is over", () => {
    const window = new ThrottleWindow()
    assert.strictEqual(window.left(three, 5_000), 3)
    window.spend(three, window.reserve(three, 1, 5_000), 5_000)
    const two = window.reserve(three, 2, 5_999)
    for (let i = 0; i < 2; i++) window.spend(three, two, 5_999)
    assert.strictEqual(window.left(three, 5_999), 0)
    assert.strictEqual(window.waitMs(three, 5_999), 1)
    assert.strictEqual(window.left(three, 6_000), 3)
    assert.strictEqual(window.waitMs(three, 6_000), 0)
  })

  it("is not opened by deliveries that fail", () => {
    const window = new ThrottleWindow()
    const failed = window.reserve(three, 3, 0)
    assert.strictEqual(window.left(three, 0), 0)
    window.giveBack(failed)
    assert.strictEqual(window.left(three, 0), 3)
    const partly = window.reserve(three, 3, 900)
    window.spend(three, partly, 900)
    window.giveBack(partly)
    window.giveBack(partly)
    assert.strictEqual(window.left(three, 1_100), 2)
  })

  it("counts a delivery in the window in which it succeeds", () => {
    const window = new ThrottleWindow()
    const slow = window.reserve(three, 2, 0)
    window.spend(three, slow, 1_500)
    assert.strictEqual(window.left(three, 1_500), 1)
    window.giveBack(slow)
    assert.strictEqual(window.left(three, 1_500), 2)
    assert.strictEqual(window.left(three, 2_499), 2)
    assert.strictEqual(window.left(three, 2_500), 3)
  })

  it("counts what is under way when it ends in the next one, where it may succeed", () => {
    const window = new ThrottleWindow()
    const slow = window.reserve(three, 2, 0)
    assert.strictEqual(window.left(three, 1_000), 1)
    window.spend(three, window.reserve(three, 1, 1_000), 1_000)
    assert.strictEqual(window.left(three, 1_001), 0)
    window.spend(three, slow, 1_500)
    window.giveBack(slow)
    assert.strictEqual(window.left(three, 1_999), 1)
    window.spend(three, window.reserve(three, 1, 1_999), 1_999)
    assert.strictEqual(window.left(three, 1_999), 0)
    assert.strictEqual(window.left(three, 2_000), 3)
  })

  it("tells when a delivery under way has ended, which alone can make room once the window is over", async () => {
    const window = new ThrottleWindow()
    const slow = window.reserve(three, 3, 0)
    const changed = Effect.runPromise(window.changed)
    assert.strictEqual(window.waitMs(three, 500), 500)
    assert.strictEqual(window.waitMs(three, 1_000), Number.POSITIVE_INFINITY)
    window.giveBack(slow)
    await changed
    assert.strictEqual(window.waitMs(three, 1_000), 0)
  })

  it("goes by its policy as it is now, and does not grow when the clock is set back", () => {
    const window = new ThrottleWindow()
    const all = window.reserve(three, 3, 10_000)
    for (let i = 0; i < 3; i++) window.spend(three, all, 10_000)
    assert.strictEqual(window.left({ maxDeliveries: 2, windowMs: 1_000 }, 10_500), 0)
    assert.strictEqual(window.left({ maxDeliveries: 5, windowMs: 1_000 }, 10_500), 2)
    assert.strictEqual(window.left({ maxDeliveries: 3, windowMs: 500 }, 10_500), 3)
    assert.strictEqual(window.left(three, 9_000), 3)
  })
})
