import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Intake } from "../../../../core/pipeline/intake.ts"
import { toSent } from "../../../../core/pipeline/unit.ts"
import type { DeliveryRow } from "../../../../core/storage/storage.ts"

const row = (seq: number, digest: string | null): DeliveryRow => ({
  seq,
  network: "net",
  sink: "a",
  monitor: "m",
  matchId: `m${seq}`,
  life: 1,
  kind: "match",
  cursor: { primary: seq, secondary: 0 },
  state: "offered",
  digest,
  attempts: 0,
  slot: false,
  payload: JSON.stringify({ id: `m${seq}`, monitor: "m", network: "net", event: {} }),
})

describe("a digest that was offered before a crash", () => {
  // Row 11 was minted dead (its predicate failed); the crash came in the middle of its replay.
  it.effect("is sent with the same members also when a row among them was being replayed", () =>
    Effect.gen(function* () {
      const rows = [row(10, "d"), row(11, null), row(12, "d")]
      const intake = new Intake<never>(
        ({ afterSeq }) => Effect.succeed(rows.filter(({ seq }) => seq > afterSeq)),
        true,
        (each) => ({ row: each, slot: null }),
      )
      yield* intake.fill()
      assert.deepStrictEqual(
        intake.take(64).map((unit) => toSent(unit).event.type),
        ["digest", "match"],
      )
    }),
  )
})
