import { assert, describe, it } from "vitest"
import { deliveryId, digestId } from "../../../core/model/sink-event.ts"
import { beforeAll, Draining } from "../../../core/pipeline/draining.ts"
import { OpenBatch } from "../../../core/pipeline/open-batch.ts"
import {
  halvesOf,
  offersOf,
  toSent,
  toUnits,
  type Unit,
  unitOfBatch,
  withoutLeft,
} from "../../../core/pipeline/unit.ts"
import { owedItem } from "./items.ts"

const seqsOf = (units: ReadonlyArray<Unit>) => units.map(({ items }) => items.map(({ row }) => row.seq))

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

describe("units", () => {
  it("are rows, or those with the same digest that stand one behind another", () => {
    const digests = [null, "a", "a", null, null, "b", "c", "c"]
    const units = toUnits(digests.map((digest, i) => owedItem(i + 1, { digest })))
    assert.deepStrictEqual(seqsOf(units), [[1], [2, 3], [4], [5], [6], [7, 8]])
    assert.deepStrictEqual(
      units.map(({ write }) => write),
      Array.from({ length: 6 }, () => "offered"),
    )
    assert.strictEqual(toUnits([owedItem(1, { state: "offered" })])[0]!.write, "nothing")
  })

  it("are written before they are sent in pieces of 256 rows, a digest with its own value", () => {
    const items = range(1, 600).map((seq) => owedItem(seq))
    const digest = digestId(items.map(({ row }) => row))
    const single = toUnits([owedItem(700), owedItem(701, { state: "offered" })])
    const pieces = offersOf([unitOfBatch(items), ...single])
    assert.deepStrictEqual(pieces, [
      { offered: [700], digests: [] },
      { offered: [], digests: [{ digest, seqs: range(1, 256) }] },
      { offered: [], digests: [{ digest, seqs: range(257, 512) }] },
      { offered: [], digests: [{ digest, seqs: range(513, 600) }] },
    ])
  })

  it("that are too large are halved, each half a digest of its own", () => {
    const halves = halvesOf(unitOfBatch(range(1, 5).map((seq) => owedItem(seq, { digest: "whole" }))), 2)
    assert.deepStrictEqual(seqsOf(halves), [
      [1, 2, 3],
      [4, 5],
    ])
    assert.deepStrictEqual(
      halves.map(({ attempts }) => attempts),
      [2, 2],
    )
    const ids = offersOf(halves).flatMap(({ digests }) => digests.map(({ digest }) => digest))
    assert.strictEqual(new Set([...ids, "whole"]).size, 3)
    // One alone is a plain match.
    const [one] = halvesOf(unitOfBatch([owedItem(1), owedItem(2)]), 1)
    assert.strictEqual(toSent(one!).delivery.id, deliveryId("m1", 1, "match"))
  })

  it("lose what a drain leaves, and then have the id of the rest", () => {
    const unit = unitOfBatch(range(1, 3).map((seq) => owedItem(seq)))
    const draining = new Draining()
    assert.strictEqual(withoutLeft(unit, draining), unit)
    draining.begin({ primary: 2, secondary: 0 })
    const rest = withoutLeft(unit, draining)!
    assert.deepStrictEqual(seqsOf([rest]), [[1, 2]])
    assert.strictEqual(
      toSent(rest).delivery.id,
      digestId([
        { matchId: "m1", life: 1 },
        { matchId: "m2", life: 1 },
      ]),
    )
    const leaving = new Draining()
    leaving.begin(beforeAll)
    assert.isNull(withoutLeft(unit, leaving))
  })
})

describe("an open batch", () => {
  const by = { windowMs: 100, maxBatch: 3 }

  it("takes matches, and goes out when it is full or before anything that does not join it", () => {
    const batch = new OpenBatch()
    const units = toUnits([
      ...range(1, 4).map((seq) => owedItem(seq)),
      owedItem(5, { kind: "retracted" }),
      owedItem(6),
      owedItem(7, { digest: "gate" }),
      owedItem(8, { digest: "gate" }),
      owedItem(9),
      owedItem(10, { state: "offered" }),
      owedItem(11),
    ])
    const ready = batch.gather(units, by, 0)
    assert.deepStrictEqual(seqsOf(ready), [[1, 2, 3], [4], [5], [6], [7, 8], [9], [10]])
    assert.deepStrictEqual(seqsOf(batch.flush()), [[11]])
    assert.deepStrictEqual(batch.flush(), [])
  })

  it("is due a window after its first match, and at once when the sink does not gather any more", () => {
    const batch = new OpenBatch()
    batch.gather(toUnits([owedItem(1)]), by, 1_000)
    batch.gather(toUnits([owedItem(2)]), by, 1_060)
    assert.strictEqual(batch.restMs(by, 1_060), 40)
    assert.strictEqual(batch.restMs(by, 1_100), 0)
    assert.strictEqual(batch.restMs(null, 1_060), 0)
    assert.strictEqual(batch.restMs(by, 0), 100)
    const ready = batch.gather(toUnits([owedItem(3)]), null, 1_070)
    assert.deepStrictEqual(seqsOf(ready), [[1, 2], [3]])
  })
})
