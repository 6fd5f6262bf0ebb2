import { Effect } from "effect"
import { compareCursors, type Cursor, formatCursor, isAfter } from "../model/cursor.ts"
import { eventRenderer } from "../model/event-json.ts"
import type { EventShape } from "../model/fields.ts"
import { matchIdDeriver } from "../model/match-id.ts"
import { broken, type ConformanceFailure, list, must } from "./conformance-check.ts"
import type { InterestSet, SourceBatch, SourceEvent, SourcePlugin } from "./source.ts"

/** An event as core sees it: its place, the ids of its matches, and its JSON. */
export interface SeenEvent {
  readonly cursor: Cursor
  /** All that must be the same whenever the event is read. */
  readonly key: string
}

export type Shapes = ReadonlyMap<string, EventShape>

/** What the interests of a set yield; fails if a selector is refused or names an identity that it does not yield. */
export const shapesOf = Effect.fnUntraced(function* (plugin: SourcePlugin, set: InterestSet<unknown>) {
  const shapes = new Map<string, EventShape>()
  for (const { id, selector } of set.interests) {
    const description = plugin.describe(selector)
    if ("problems" in description)
      return yield* broken(`describe refuses the selector ${id}: ${list(description.problems)}`)
    const shape = { ...description, address: plugin.address }
    yield* must(shape.identity.length > 0, `the selector ${id} names no identity fields`)
    yield* Effect.try({
      try: () => matchIdDeriver(shape, { network: "conformance", monitor: id }),
      catch: (error) => broken(`the selector ${id}: ${(error as Error).message}`),
    })
    shapes.set(id, shape)
  }
  return shapes as Shapes
})

/** Checks that batches follow one another and hold only what lies in their piece; gives their events. */
export const eventsOf = Effect.fnUntraced(function* (
  batches: ReadonlyArray<SourceBatch>,
  after: Cursor,
  shapes: Shapes,
) {
  const seen: Array<SeenEvent> = []
  let end = after
  for (const { events, upTo, resume } of batches) {
    const piece = `the batch from ${formatCursor(end)} (excluded) to ${formatCursor(upTo)} (included)`
    yield* must(isAfter(upTo, end), `${piece} does not advance`)
    let last = end
    for (const event of events) {
      const at = formatCursor(event.cursor)
      yield* must(isAfter(event.cursor, end), `${piece} holds an event at ${at}, at or before its beginning`)
      yield* must(!isAfter(event.cursor, upTo), `${piece} holds an event at ${at}, behind its end`)
      yield* must(compareCursors(event.cursor, last) >= 0, `${piece} holds the event at ${at} out of order`)
      last = event.cursor
      seen.push(yield* see(event, shapes))
    }
    const beyond = resume.find(({ primary }) => primary > upTo.primary)
    yield* must(beyond === undefined, `${piece} records a hash of ${beyond?.primary}, behind its end`)
    end = upTo
  }
  yield* must(
    new Set(seen.map(({ key }) => key)).size === seen.length,
    "two events cannot be told apart: index must differ",
  )
  return seen
})

/** Reads an event as core does. */
export const see = (event: SourceEvent, shapes: Shapes): Effect.Effect<SeenEvent, ConformanceFailure> =>
  Effect.try({
    try: () => {
      const fields = event.fields()
      const matches = event.interests.map((id) => {
        const shape = shapes.get(id)
        if (shape === undefined) throw new Error(`it names the interest ${id}, which it was not given`)
        const derive = matchIdDeriver(shape, { network: "conformance", monitor: id })
        return [derive(event.cursor, event.index, fields), JSON.stringify(eventRenderer(shape)(fields))]
      })
      if (matches.length === 0) throw new Error("it concerns no interest")
      if (event.time !== null && !Number.isSafeInteger(event.time)) throw new Error("its time is not in whole ms")
      return { cursor: event.cursor, key: JSON.stringify([event.cursor, event.index, event.time, matches.toSorted()]) }
    },
    catch: (error) => broken(`the event at ${formatCursor(event.cursor)}: ${(error as Error).message}`),
  })

/** Fails with the first difference of two readings of the same piece. */
export const sameEvents = Effect.fnUntraced(function* (
  what: string,
  expected: ReadonlyArray<SeenEvent>,
  actual: ReadonlyArray<SeenEvent>,
) {
  const keys = new Set(actual.map(({ key }) => key))
  const lacking = expected.find(({ key }) => !keys.has(key))
  if (lacking !== undefined) return yield* broken(`${what}: only the first has ${lacking.key}`)
  const known = new Set(expected.map(({ key }) => key))
  const added = actual.find(({ key }) => !known.has(key))
  if (added !== undefined) return yield* broken(`${what}: only the second has ${added.key}`)
})
