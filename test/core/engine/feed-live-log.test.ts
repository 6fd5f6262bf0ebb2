import { assert, it } from "@effect/vitest"
import { LiveLog } from "../../../core/engine/feed/live-log.ts"
import type { StoredFeedItem } from "../../../core/storage/feed-item.ts"

const match = (network: string, position: number, size = 10): StoredFeedItem => ({
  kind: "match",
  network,
  position,
  life: 1,
  emission: null,
  late: false,
  matchId: `${position}`,
  monitor: "m",
  cursor: { primary: position, secondary: 0 },
  time: null,
  payload: "x".repeat(size),
})

const held = (log: LiveLog): ReadonlyArray<number> =>
  Array.from({ length: log.end - log.start }, (_, at) => log.at(log.start + at).stored.position)

it("the live log holds the newest items by number, and knows what it let go", () => {
  const log = new LiveLog(3)
  log.append("a", [match("a", 1), match("a", 2)], 2)
  log.append("b", [match("b", 7)], 9)
  assert.deepStrictEqual([held(log), log.start, log.floors.size], [[1, 2, 7], 0, 0])
  log.append("a", [match("a", 5)], 6)
  assert.deepStrictEqual([held(log), log.start], [[2, 7, 5], 1])
  assert.deepStrictEqual(Array.from(log.floors), [["a", 1]])
  assert.deepStrictEqual(Array.from(log.read), [
    ["a", 6],
    ["b", 9],
  ])
  log.skipTo(new Map([["a", 50]]))
  assert.deepStrictEqual([held(log), log.start], [[], 4])
  assert.deepStrictEqual(Array.from(log.floors), [
    ["a", 50],
    ["b", 7],
  ])
})

it("the live log holds no more than about 8 MiB of payloads, and none that is larger alone", () => {
  const log = new LiveLog(1000)
  const mebi = 1024 * 1024
  for (let position = 1; position <= 20; position++) log.append("a", [match("a", position, mebi)], position)
  assert.deepStrictEqual(held(log), [13, 14, 15, 16, 17, 18, 19, 20])
  log.append("a", [match("a", 21, 9 * mebi)], 21)
  assert.deepStrictEqual([held(log), log.floors.get("a")], [[], 21])
  log.append("a", [match("a", 22, mebi)], 22)
  assert.deepStrictEqual(held(log), [22])
})
