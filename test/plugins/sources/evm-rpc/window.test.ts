import { assert, describe, it } from "vitest"
import { compareHistory, HashWindow } from "../../../../plugins/sources/evm-rpc/window.ts"

const same = (primary: number) => ({ primary, ours: `a${primary}`, theirs: `a${primary}` })
const other = (primary: number) => ({ primary, ours: `a${primary}`, theirs: `b${primary}` })
const unknown = (primary: number) => ({ primary, ours: `a${primary}`, theirs: null })

describe("comparing known hashes with a chain", () => {
  it("finds the newest common block under those that differ", () => {
    const found = compareHistory([other(9), other(8), same(7), same(6)])
    assert.deepStrictEqual(found, { intact: false, lowestOther: other(8), common: 7 })
  })

  it("takes blocks that the chain does not have yet for no difference", () => {
    assert.isTrue(compareHistory([unknown(9), unknown(8), same(7)]).intact)
    assert.isTrue(compareHistory([unknown(9), unknown(8)]).intact)
    assert.isFalse(compareHistory([unknown(9), other(8), same(7)]).intact)
  })

  it("tells that nothing is common", () => {
    assert.strictEqual(compareHistory([other(9), other(8)]).common, undefined)
  })
})

describe("the window of hashes", () => {
  it("forgets the oldest beyond its limit, and never what it was resumed with", () => {
    const window = new HashWindow(3, [])
    for (let primary = 1; primary <= 5; primary++) window.put({ primary, hash: `h${primary}` })
    assert.deepStrictEqual(
      window.newestFirst.map(({ primary }) => primary),
      [5, 4, 3],
    )
    assert.strictEqual(window.hashOf(2), undefined)
    const anchors = [5, 3, 1, 0].map((primary) => ({ primary, hash: `h${primary}` }))
    assert.deepStrictEqual(new HashWindow(2, anchors).newestFirst, anchors)
  })
})
