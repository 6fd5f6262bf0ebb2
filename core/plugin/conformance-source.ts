import { Effect, Stream } from "effect"
import { compareCursors, endOf, formatCursor, isAfter, startOf } from "../model/cursor.ts"
import {
  accepted,
  broken,
  check,
  type ConformanceCheck,
  type ConformanceEnvironment,
  must,
  nothingOutside,
  problemsWith,
  promptly,
  refused,
} from "./conformance-check.ts"
import { eventsOf, sameEvents, see, type SeenEvent, type Shapes, shapesOf } from "./conformance-feed.ts"
import { record, type Recorded, waitsWhileFull } from "./conformance-run.ts"
import type { InterestSet, Source, SourcePlugin } from "./source.ts"

export interface SourceConformance {
  readonly plugin: SourcePlugin
  readonly environment?: ConformanceEnvironment
  /** JSON of a config with which the feed can be read. */
  readonly config: unknown
  /** Configs that the schema or `make` must refuse. */
  readonly refusedConfigs: ReadonlyArray<unknown>
  /** JSON of selectors that yield events in the range. */
  readonly selectors: ReadonlyArray<unknown>
  /** Selectors that the schema or `describe` must refuse. */
  readonly refusedSelectors: ReadonlyArray<unknown>
  /** Primaries, both included, that stay as they are and that a run reaches: at least two, with an event in each half. */
  readonly range: { readonly from: number; readonly to: number }
}

/** The contract of sources, as checks for any test runner. */
export const sourceConformance = (options: SourceConformance): ReadonlyArray<ConformanceCheck> => {
  const { plugin, environment = nothingOutside, config, refusedConfigs, selectors, refusedSelectors, range } = options
  const before = startOf(range.from)
  const end = endOf(range.to)

  const build = accepted("the config", plugin.config, config, plugin.sensitive).pipe(
    Effect.flatMap((value): ReturnType<SourcePlugin["make"]> => plugin.make(value)),
  )

  const prepare = Effect.gen(function* () {
    const source: Source<unknown> = yield* build
    const interests = yield* Effect.forEach(selectors, (json, i) =>
      Effect.map(accepted(`selector ${i}`, plugin.selector, json), (selector) => ({ id: `interest-${i}`, selector })),
    )
    const set: InterestSet<unknown> = { version: 1, interests }
    return { source, set, shapes: yield* shapesOf(plugin, set) }
  })

  const scan = Effect.fnUntraced(function* (
    source: Source<unknown>,
    set: InterestSet<unknown>,
    shapes: Shapes,
    { from, to } = range,
  ) {
    const batches = yield* Stream.runCollect(source.scan({ from, to, interests: set }))
    const events = yield* eventsOf(batches, startOf(from), shapes)
    const reached = batches.at(-1)?.upTo ?? startOf(from)
    yield* must(compareCursors(reached, endOf(to)) === 0, `scan to ${to} ends at ${formatCursor(reached)}`)
    yield* must(
      batches.every(({ interests }) => interests === set.version),
      "scan names another version of the interests than it was given",
    )
    return events
  })

  const ranEvents = Effect.fnUntraced(function* ({ batches, late }: Recorded, after: typeof before, shapes: Shapes) {
    const found = yield* Effect.forEach(
      late.flatMap(({ events }) => events),
      (event) => see(event, shapes),
    )
    const unique = new Map([...(yield* eventsOf(batches, after, shapes)), ...found].map((event) => [event.key, event]))
    return [...unique.values()].filter(({ cursor }) => !isAfter(cursor, end))
  })

  return [
    check(
      "refuses wrong configs and says why",
      environment,
      refused(
        "a config",
        refusedConfigs,
        problemsWith(plugin.config, (value) =>
          plugin.make(value).pipe(
            Effect.as([]),
            Effect.catch((error) => Effect.succeed([{ path: "", message: error.message }])),
          ),
        ),
      ),
    ),
    check(
      "refuses wrong selectors and says why",
      environment,
      refused(
        "a selector",
        refusedSelectors,
        problemsWith(plugin.selector, (selector) =>
          Effect.sync(() => {
            const description = plugin.describe(selector)
            return "problems" in description ? description.problems : []
          }),
        ),
      ),
    ),
    check(
      "can be built several times at once, and each is released promptly",
      environment,
      promptly("building and releasing it", Effect.scoped(Effect.all([build, build]))),
    ),
    check(
      "starts at a position that never goes back",
      environment,
      Effect.gen(function* () {
        const { source } = yield* prepare
        const first = yield* source.start
        const second = yield* source.start
        yield* must(
          Number.isSafeInteger(first.primary) && Number.isSafeInteger(first.secondary) && first.secondary >= 0,
          `start is ${formatCursor(first)}, no position`,
        )
        yield* must(!isAfter(first, second), `start was ${formatCursor(first)}, then ${formatCursor(second)}`)
      }),
    ),
    check(
      "scans a range in order, as batches that follow one another, with the fields that it describes",
      environment,
      Effect.gen(function* () {
        const { source, set, shapes } = yield* prepare
        const events = yield* scan(source, set, shapes)
        yield* must(events.length > 0, "the range holds no event: the suite needs some to judge by")
      }),
    ),
    check(
      "gives every event the same id, fields and place whenever it is read",
      environment,
      Effect.gen(function* () {
        const { source, set, shapes } = yield* prepare
        const again = yield* prepare
        yield* sameEvents(
          "two scans of one range differ",
          yield* scan(source, set, shapes),
          yield* scan(again.source, set, shapes),
        )
      }),
    ),
    check(
      "finds the same events however a range is cut",
      environment,
      Effect.gen(function* () {
        const { source, set, shapes } = yield* prepare
        const middle = Math.floor((range.from + range.to) / 2)
        const whole = yield* scan(source, set, shapes)
        const low = yield* scan(source, set, shapes, { from: range.from, to: middle })
        const high = yield* scan(source, set, shapes, { from: middle + 1, to: range.to })
        yield* sameEvents("a scan of the whole and of its halves differ", whole, [...low, ...high])
      }),
    ),
    check(
      "scans to the end without any interest, and stops when no more is read",
      environment,
      Effect.gen(function* () {
        const { source, set, shapes } = yield* prepare
        const events = yield* scan(source, { version: 7, interests: [] }, shapes)
        yield* must(events.length === 0, "there are events though there is no interest")
        yield* promptly(
          "ending a scan after its first batch",
          Stream.runDrain(Stream.take(source.scan({ ...range, interests: set }), 1)),
        )
      }),
    ),
    check(
      "runs over the same events as it scans, one emit after another, and ends promptly when interrupted",
      environment,
      Effect.gen(function* () {
        const { source, set, shapes } = yield* prepare
        const scanned = yield* scan(source, set, shapes)
        const ran = yield* record(source, set, { after: before, anchors: [], records: [], start: before, until: end })
        yield* sameEvents("a scan and a run differ", scanned, yield* ranEvents(ran, before, shapes))
      }),
    ),
    check(
      "goes on behind the position that it is given, with the hashes that it recorded",
      environment,
      Effect.gen(function* () {
        const { source, set, shapes } = yield* prepare
        const events: ReadonlyArray<SeenEvent> = yield* scan(source, set, shapes)
        const middle = events[Math.floor((events.length - 1) / 2)]
        if (middle === undefined) return yield* broken("the range holds no event: the suite needs some to judge by")
        const first = yield* record(source, set, { after: before, anchors: [], records: [], start: before, until: end })
        const anchors = first.batches
          .flatMap(({ resume }) => resume)
          .filter(({ primary }) => primary <= middle.cursor.primary)
          .toSorted((a, b) => b.primary - a.primary)
        const records = first.batches
          .flatMap((batch) => batch.records ?? [])
          .filter(({ cursor }) => !isAfter(cursor, middle.cursor))
        const rest = yield* record(source, set, { after: middle.cursor, anchors, records, start: before, until: end })
        yield* sameEvents(
          `what lies behind ${formatCursor(middle.cursor)} and a run behind it differ`,
          events.filter(({ cursor }) => isAfter(cursor, middle.cursor)),
          yield* ranEvents(rest, middle.cursor, shapes),
        )
      }),
    ),
    check(
      "waits while the pipeline is full",
      environment,
      Effect.gen(function* () {
        const { source, set } = yield* prepare
        yield* waitsWhileFull(source, set, before)
      }),
    ),
  ]
}
