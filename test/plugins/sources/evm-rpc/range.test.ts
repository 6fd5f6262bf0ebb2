import { assert, describe, it } from "vitest"
import { adaptRange, initialRange, shrinkRange } from "../../../../plugins/sources/evm-rpc/rpc/range.ts"

const range = { blocks: 1000, cap: 1000 }

describe("the size of the next range", () => {
  it("is what the provider says it serves, and never grows beyond it", () => {
    const shrunk = shrinkRange(range, 0, 1000, { kind: "range", hint: { blocks: 300 } })
    assert.deepStrictEqual(shrunk, { blocks: 300, cap: 300 })
    assert.deepStrictEqual(adaptRange(shrunk, 300, 0), { blocks: 300, cap: 300 })
  })

  it("is a half when the provider suggests what was asked for, or more, or nothing", () => {
    for (const hint of [{ blocks: 1000 }, { blocks: 5000 }, {}])
      assert.strictEqual(shrinkRange(range, 0, 1000, { kind: "range", hint }).blocks, 500)
    assert.strictEqual(shrinkRange(range, 5, 1000, { kind: "too-many", hint: { from: 5, to: 1004 } }).blocks, 500)
    assert.strictEqual(shrinkRange(range, 5, 1000, { kind: "too-many", hint: { from: 7, to: 8 } }).blocks, 500)
  })

  it("is the suggested range when that begins where it should", () => {
    assert.deepStrictEqual(shrinkRange(range, 5, 1000, { kind: "too-many", hint: { from: 5, to: 24 } }), {
      blocks: 20,
      cap: 1000,
    })
  })

  it("reaches one block and no less", () => {
    let size = range
    for (let i = 0; i < 20; i++) size = shrinkRange(size, 0, size.blocks, { kind: "too-many" })
    assert.strictEqual(size.blocks, 1)
  })

  it("grows back after an answer that was small enough", () => {
    let size = { blocks: 10, cap: 1000 }
    for (let i = 0; i < 20; i++) size = adaptRange(size, size.blocks, 10)
    assert.strictEqual(size.blocks, 1000)
  })

  it("shrinks before answers become too large to hold", () => {
    assert.strictEqual(adaptRange(range, 1000, 50_000).blocks, 200)
    assert.strictEqual(adaptRange(range, 1000, 10_000).blocks, 1000)
    assert.strictEqual(adaptRange({ blocks: 100, cap: 1000 }, 100, 8_000).blocks, 125)
  })

  it("begins small, for a block may hold many logs", () => {
    assert.deepStrictEqual(initialRange(1000), { blocks: 100, cap: 1000 })
    assert.deepStrictEqual(initialRange(10), { blocks: 10, cap: 10 })
  })
})
