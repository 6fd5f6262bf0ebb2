import { Clock, Effect, Schema, Stream } from "effect"
import { endOf, type InterestSet, type SourceBatch, type SourceEvent, SourcePlugin } from "blockwatcher/plugin"

/*
 * A clock as a source: tick number n happens n intervals after 1970. Nothing is fetched, and every tick can be read
 * again at any time, so this is the smallest source that keeps the whole contract.
 *
 *   { "id": "clock", "module": "ticker", "config": { "interval_ms": 1000 } }
 *   { "id": "each-minute", "network": "clock", "selector": { "every": 60 }, "sinks": ["alerts"] }
 */

const positive = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400_000 }))

const Config = Schema.Struct({ interval_ms: positive })

/** Ticks whose number `every` divides. */
const Selector = Schema.Struct({ every: positive })
type Selector = typeof Selector.Type

/** The ticks of one batch; a quiet night is caught up in pieces of this size. */
const BATCH = 500

export default SourcePlugin.make({
  name: "ticker",
  config: Config,
  selector: Selector,
  describe: () => ({
    fields: { kind: "record", fields: { tick: { kind: "number" }, time: { kind: "number" } } },
    // Fields that make an event what it is; a match's id is derived from them. The time follows from the number.
    identity: ["tick"],
  }),
  make: ({ interval_ms }) => {
    const eventOf = (tick: number, interests: ReadonlyArray<string>): SourceEvent => {
      const time = tick * interval_ms
      return { cursor: { primary: tick, secondary: 0 }, index: 0, interests, time, fields: () => ({ tick, time }) }
    }

    /** Everything of the ticks `from` to `to`, both included. */
    const read = (from: number, to: number, { version, interests }: InterestSet<Selector>): SourceBatch => {
      const events = Array.from({ length: to - from + 1 }, (_, i) => from + i).flatMap((tick) => {
        const concerned = interests.filter(({ selector }) => tick % selector.every === 0).map(({ id }) => id)
        return concerned.length === 0 ? [] : [eventOf(tick, concerned)]
      })
      // A feed that can fork records hashes in `resume`; time does not fork.
      return { events, upTo: endOf(to), resume: [], interests: version }
    }

    const now = Effect.map(Clock.currentTimeMillis, (ms) => Math.floor(ms / interval_ms))

    return Effect.succeed({
      // A network without a checkpoint sees the next tick first.
      start: Effect.map(now, endOf),
      run: Effect.fnUntraced(function* ({ resume, interests, emit, head }) {
        // Tick n has the cursor {n, 0}: a cursor of this primary, whatever its secondary, stands at or behind it.
        let next = resume.cursor.primary + 1
        while (true) {
          const newest = yield* now
          yield* head(endOf(newest))
          if (next > newest) {
            const ms = yield* Clock.currentTimeMillis
            yield* Effect.sleep(next * interval_ms - ms)
            continue
          }
          const to = Math.min(newest, next + BATCH - 1)
          // The interests are read for each piece, so that a new monitor takes effect with the next one.
          yield* emit(read(next, to, yield* interests))
          next = to + 1
        }
      }),
      scan: ({ from, to, interests }) =>
        Stream.range(0, Math.floor((to - from) / BATCH)).pipe(
          Stream.map((piece) => from + piece * BATCH),
          Stream.map((first) => read(first, Math.min(to, first + BATCH - 1), interests)),
        ),
    })
  },
})
