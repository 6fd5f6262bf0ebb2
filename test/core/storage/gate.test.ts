import { assert, describe, it } from "@effect/vitest"
import type { Gate } from "../../../core/model/policy.ts"
import { type GateHit, gateSession, reachOf } from "../../../core/storage/gate.ts"

/** A small generator of numbers that a seed fixes. */
const numbers = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

/** Hits in cursor order whose times never go back. */
const madeHits = (seed: number, length: number): ReadonlyArray<GateHit> => {
  const next = numbers(seed)
  let time = 0
  return Array.from({ length }, (_, i) => {
    time += Math.floor(next() * 6)
    return { pk: i, id: `h${i}`, cursor: { primary: i, secondary: 0 }, time }
  })
}

/** What the gate is said to do, over the whole of a chain at once. */
const naive = (gate: Gate, hits: ReadonlyArray<GateHit>): ReadonlyArray<ReadonlyArray<GateHit>> => {
  const emissions: Array<ReadonlyArray<GateHit>> = []
  let session: ReadonlyArray<GateHit> = []
  let window = Number.NEGATIVE_INFINITY
  for (const hit of hits) {
    if (gate.type === "max_once") {
      if (hit.time < window) continue
      window = hit.time + gate.windowMs
      emissions.push([hit])
      continue
    }
    session = [...session, hit].filter(({ time }) => hit.time - time <= gate.windowMs)
    if (session.length < gate.count) continue
    emissions.push(session)
    session = []
  }
  return emissions
}

/** The same, batch by batch, from what was recorded before each, as storage does it. */
const folded = (gate: Gate, batches: ReadonlyArray<ReadonlyArray<GateHit>>): ReadonlyArray<ReadonlyArray<GateHit>> => {
  const emissions: Array<ReadonlyArray<GateHit>> = []
  const held = new Set<GateHit>()
  const consumed = new Set<GateHit>()
  for (const batch of batches) {
    const { from, to } = reachOf(
      gate,
      batch.map(({ time }) => time),
    )
    const recorded = [...(gate.type === "threshold" ? held : consumed)]
    const session = gateSession(
      gate,
      recorded.filter(({ time }) => from <= time && time <= to),
    )
    for (const hit of batch) {
      const end = session.add(hit)
      if (end === "discarded") continue
      held.add(hit)
      if (end === "held") continue
      emissions.push(end)
      for (const member of end) {
        held.delete(member)
        consumed.add(member)
      }
    }
  }
  return emissions
}

const spanOf = (hits: ReadonlyArray<GateHit>): number => {
  const times = hits.map(({ time }) => time)
  return Math.max(...times) - Math.min(...times)
}

const gates: ReadonlyArray<Gate> = [
  ...[1, 2, 3, 7].flatMap((count): ReadonlyArray<Gate> => [
    { type: "threshold", count, windowMs: 1, by: null },
    { type: "threshold", count, windowMs: 12, by: null },
  ]),
  { type: "max_once", windowMs: 1, by: null },
  { type: "max_once", windowMs: 12, by: null },
]

describe("a gate", () => {
  for (const gate of gates) {
    const { type, windowMs } = gate
    const title = `${type} ${type === "threshold" ? `${gate.count} ` : ""}within ${windowMs} ms`
    it(`${title} makes of a chain in any pieces what it makes of the whole`, () => {
      for (let seed = 0; seed < 50; seed++) {
        const hits = madeHits(seed, 60)
        const next = numbers(seed + 1000)
        const batches: Array<Array<GateHit>> = []
        for (const hit of hits) {
          if (batches.length === 0 || next() < 0.3) batches.push([])
          batches.at(-1)!.push(hit)
        }
        assert.deepStrictEqual(folded(gate, batches), naive(gate, hits), `seed ${seed}`)
      }
    })
  }

  for (const gate of gates) {
    if (gate.type !== "threshold") continue
    it(`threshold ${gate.count} within ${gate.windowMs} ms lets times that go back span no more than the window`, () => {
      for (let seed = 0; seed < 50; seed++) {
        const next = numbers(seed + 2000)
        const hits = madeHits(seed, 60).map((hit) => ({ ...hit, time: hit.time - Math.floor(next() * 20) }))
        const emissions = folded(gate, [hits])
        assert.deepStrictEqual(
          folded(
            gate,
            hits.map((hit) => [hit]),
          ),
          emissions,
        )
        const left = new Set(hits)
        for (const members of emissions) {
          assert.isAtLeast(members.length, gate.count)
          assert.isAtMost(spanOf(members), gate.windowMs)
          for (const member of members) assert.isTrue(left.delete(member))
        }
        // Nothing is held that would have been enough.
        const times = [...left].map(({ time }) => time).toSorted((a, b) => a - b)
        for (let i = gate.count - 1; i < times.length; i++) {
          assert.isAbove(times[i]! - times[i - gate.count + 1]!, gate.windowMs)
        }
      }
    })
  }

  it("counts a hit whose time went back with those before and after its time, the earliest first", () => {
    const [a, b, c] = madeHits(1, 3).map((hit, i) => ({ ...hit, time: [0, 20, 10][i]! })) as [GateHit, GateHit, GateHit]
    const among = (count: number) => gateSession({ type: "threshold", count, windowMs: 10, by: null }, [a, b]).add(c)
    assert.deepStrictEqual(among(2), [a, c])
    assert.strictEqual(among(3), "held")
  })

  it("counts a hit that is found late with the later ones that were held", () => {
    const [first, second, third] = madeHits(1, 3) as [GateHit, GateHit, GateHit]
    const session = gateSession({ type: "threshold", count: 3, windowMs: 100, by: null }, [third, first])
    assert.deepStrictEqual(session.add(second), [first, second, third])
  })

  it("lets a late hit open a window of its own where none covers it", () => {
    const [first, second] = madeHits(3, 2) as [GateHit, GateHit]
    const session = gateSession({ type: "max_once", windowMs: 100, by: null }, [{ ...second, time: first.time + 50 }])
    assert.deepStrictEqual(session.add(first), [first])
    assert.strictEqual(session.add(second), "discarded")
  })
})
