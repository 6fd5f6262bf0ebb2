import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Intake } from "../../../core/pipeline/intake.ts"
import type { DeliveryRow } from "../../../core/storage/storage.ts"
import { owedItem, owedRow } from "./items.ts"

/** A table of owed rows that counts how often it is read. */
class Table {
  rows: Array<DeliveryRow> = []
  reads = 0

  readonly intake = (rows: "handed" | "owed" | "pulled") =>
    new Intake<never>(
      ({ afterSeq, limit }) =>
        Effect.sync(() => {
          this.reads++
          return this.rows.filter(({ seq }) => seq > afterSeq).slice(0, limit)
        }),
      rows,
      (row) => ({ row, slot: null, span: null }),
    )
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

const take = (intake: Intake<never>, rows = 10_000) =>
  Effect.map(intake.fill(), () => intake.take(rows).map(({ items }) => items.map(({ row }) => row.seq)))

const takeAll = Effect.fnUntraced(function* (intake: Intake<never>) {
  const units: Array<ReadonlyArray<number>> = []
  while (!intake.isEmpty) units.push(...(yield* take(intake, 64)))
  return units
})

describe("what a worker takes its rows from", () => {
  it.effect("reads owed rows page by page, without tearing a digest, before what it is handed", () =>
    Effect.gen(function* () {
      const table = new Table()
      table.rows = [
        ...range(1, 1_250).map((seq) => owedRow(seq)),
        ...range(1_251, 1_900).map((seq) => owedRow(seq, { digest: "long" })),
        ...range(1_901, 1_902).map((seq) => owedRow(seq, { digest: "short" })),
      ]
      const intake = table.intake("owed")
      const back = yield* Effect.forkChild(intake.readBack, { startImmediately: true })
      // As much as may wait in memory.
      assert.strictEqual((yield* take(intake)).length, 1_024)
      assert.isUndefined(back.pollUnsafe())
      const units = yield* takeAll(intake)
      assert.deepStrictEqual(units.slice(1_250 - 1_024), [range(1_251, 1_900), [1_901, 1_902]])
      yield* Fiber.join(back)
      assert.isTrue(intake.isEmpty)
      yield* intake.hand([owedItem(1_903), owedItem(1_904)])
      assert.deepStrictEqual(yield* take(intake), [[1_903], [1_904]])
      assert.strictEqual(table.reads, 8)
    }),
  )

  it.effect("keeps a digest whole whatever stands between its members, also where a page ends", () =>
    Effect.gen(function* () {
      const table = new Table()
      table.rows = [
        ...range(1, 253).map((seq) => owedRow(seq)),
        owedRow(254, { digest: "torn" }),
        owedRow(255),
        owedRow(256, { digest: "torn" }),
        owedRow(257),
        owedRow(258, { digest: "torn" }),
        ...range(259, 700).map((seq) => owedRow(seq)),
      ]
      const units = yield* takeAll(table.intake("owed"))
      assert.deepStrictEqual(units.slice(252, 256), [[253], [254, 256, 258], [255], [257]])
      assert.deepStrictEqual(
        units.flat().toSorted((a, b) => a - b),
        range(1, 700),
      )
    }),
  )

  it.effect("lets who hands over wait while more than 1,024 rows wait", () =>
    Effect.gen(function* () {
      const intake = new Table().intake("handed")
      const handing = yield* Effect.forkChild(intake.hand(range(1, 1_100).map((seq) => owedItem(seq))), {
        startImmediately: true,
      })
      assert.isUndefined(handing.pollUnsafe())
      assert.strictEqual((yield* take(intake, 100)).length, 100)
      yield* Fiber.join(handing)
      assert.strictEqual((yield* takeAll(intake)).length, 1_000)
      const stuck = yield* Effect.forkChild(intake.hand(range(1, 1_100).map((seq) => owedItem(seq))))
      intake.close()
      yield* Fiber.join(stuck)
      assert.isTrue(intake.isEmpty)
    }),
  )

  it.effect("reads on while it pulls, as often as it is woken", () =>
    Effect.gen(function* () {
      const table = new Table()
      table.rows = range(1, 3).map((seq) => owedRow(seq))
      const intake = table.intake("pulled")
      yield* intake.readBack
      assert.deepStrictEqual(yield* takeAll(intake), [[1], [2], [3]])
      assert.deepStrictEqual(yield* take(intake), [])
      const { reads } = table
      const arrival = yield* Effect.forkChild(intake.arrival, { startImmediately: true })
      assert.isUndefined(arrival.pollUnsafe())
      table.rows.push(owedRow(4))
      intake.wake()
      yield* Fiber.join(arrival)
      assert.deepStrictEqual(yield* takeAll(intake), [[4]])
      assert.strictEqual(table.reads, reads + 1)
    }),
  )

  it.effect("takes rows that are owed again first, each once", () =>
    Effect.gen(function* () {
      const table = new Table()
      table.rows = range(1, 300).map((seq) => owedRow(seq))
      const intake = table.intake("pulled")
      assert.deepStrictEqual(yield* take(intake, 2), [[1], [2]])
      // One from before what was read, and one that lies ahead of it.
      intake.handAgain([owedItem(0, { kind: "retracted" }), owedItem(299, { kind: "retracted" })])
      const units = yield* takeAll(intake)
      assert.deepStrictEqual(units.slice(0, 2), [[0], [3]])
      assert.deepStrictEqual(
        units.flat().filter((seq) => seq === 299),
        [299],
      )
      intake.handAgain([owedItem(5, { kind: "retracted" })])
      assert.deepStrictEqual(yield* take(intake), [[5]])
    }),
  )

  it.effect("reads nothing more once it is ended", () =>
    Effect.gen(function* () {
      const table = new Table()
      table.rows = range(1, 1_000).map((seq) => owedRow(seq))
      const intake = table.intake("pulled")
      yield* take(intake, 10)
      intake.end()
      assert.strictEqual((yield* takeAll(intake)).length, 246)
      assert.strictEqual(table.reads, 1)
      yield* intake.arrival
    }),
  )
})
