import { Effect, Exit, Fiber, Redacted, Schedule, Schema, type Scope, Stream } from "effect"
import { Egress } from "../../../../core/plugin/egress.ts"
import type { SourceError } from "../../../../core/plugin/error.ts"
import { Secrets, SecretUnavailable } from "../../../../core/plugin/secrets.ts"
import type {
  Anchor,
  InterestSet,
  LateBatch,
  Source,
  SourceBatch,
  SourceEvent,
  SourceOutcome,
  SourceRecord,
} from "../../../../core/plugin/source.ts"
import type { Cursor } from "../../../../core/model/cursor.ts"
import { startOf } from "../../../../core/model/cursor.ts"
import { eventRenderer } from "../../../../core/model/event-json.ts"
import { type EventShape, type Json, ofForm, type RecordType } from "../../../../core/model/fields.ts"
import { matchIdDeriver } from "../../../../core/model/match-id.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { TRANSFER } from "../../../../server/devnet/simulated/transfer.ts"

/** Config that reacts fast enough for a test. */
export const quick = { poll_interval_ms: 20, confirmations: 0, start: 0, chain_id: 1 }

/** Builds the source from the JSON of a config. */
export const makeSource = Effect.fnUntraced(function* (
  config: Readonly<Record<string, unknown>>,
): Effect.fn.Return<Source<Selector>, unknown, Scope.Scope | Egress | Secrets> {
  const decoded = yield* Schema.decodeUnknownEffect(evmRpc.config)(config, { errors: "all", onExcessProperty: "error" })
  return yield* evmRpc.make(decoded)
})

export const outside = Egress.layer({ loopback: true, allow: [] })

/** Secrets from a record. */
export const secretsFrom = (values: Readonly<Record<string, string>>) =>
  Secrets.of({
    resolve: (reference) =>
      values[reference] === undefined
        ? Effect.fail(new SecretUnavailable({ reference, reason: "it is not set" }))
        : Effect.succeed(Redacted.make(values[reference]!)),
  })

export const transferInterests = (version = 1): InterestSet<Selector> => ({
  version,
  interests: [{ id: "transfers", selector: { kind: "event", event: TRANSFER } }],
})

/** Waits until the condition holds, and fails with `what` if it does not in time. */
export const until = (what: string, condition: () => boolean, seconds = 15): Effect.Effect<void> =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.fail("not yet"))).pipe(
    Effect.retry(Schedule.spaced("5 millis")),
    Effect.timeoutOrElse({
      duration: seconds * 1000,
      orElse: () => Effect.die(new Error(`this did not happen within ${seconds} s: ${what}`)),
    }),
    Effect.orDie,
  )

/** What a run did so far, as the runtime would see it. */
export class Driven {
  readonly batches: Array<SourceBatch> = []
  readonly late: Array<LateBatch> = []
  readonly troubles: Array<string | null> = []
  interests: InterestSet<Selector>
  head: Cursor | undefined = undefined
  exit: Exit.Exit<SourceOutcome, SourceError> | undefined = undefined
  /** While false, the pipeline is full. */
  accepting = true
  waiting = 0

  constructor(interests: InterestSet<Selector>) {
    this.interests = interests
  }

  get events(): ReadonlyArray<SourceEvent> {
    return this.batches.flatMap(({ events }) => events)
  }

  get upTo(): number {
    return this.batches.at(-1)?.upTo.primary ?? -1
  }

  get trouble(): string | null {
    return this.troubles.at(-1) ?? null
  }

  /** The hashes that core would have recorded, newest first. */
  get anchors(): ReadonlyArray<Anchor> {
    return this.batches.flatMap(({ resume }) => resume).toReversed()
  }

  get outcome(): SourceOutcome | undefined {
    return this.exit !== undefined && Exit.isSuccess(this.exit) ? this.exit.value : undefined
  }
}

/** Starts a run that ends with the scope. */
export const drive = Effect.fnUntraced(function* (
  source: Source<Selector>,
  options: {
    readonly cursor?: Cursor
    readonly anchors?: ReadonlyArray<Anchor>
    readonly depth?: number
    readonly records?: ReadonlyArray<SourceRecord>
    readonly start?: Cursor
    readonly interests?: InterestSet<Selector>
  } = {},
) {
  const driven = new Driven(options.interests ?? transferInterests())
  const fiber = yield* source
    .run({
      resume: {
        cursor: options.cursor ?? startOf(0),
        anchors: options.anchors ?? [],
        depth: options.depth ?? 1024,
        records: options.records ?? [],
        start: options.start ?? startOf(0),
      },
      interests: Effect.sync(() => driven.interests),
      emit: (batch) =>
        Effect.gen(function* () {
          driven.waiting++
          yield* until("the pipeline takes batches again", () => driven.accepting, 60)
          driven.waiting--
          driven.batches.push(batch)
        }),
      late: (batch) =>
        Effect.sync(() => {
          driven.late.push(batch)
        }),
      head: (cursor) =>
        Effect.sync(() => {
          driven.head = cursor
        }),
      trouble: (reason) =>
        Effect.sync(() => {
          driven.troubles.push(reason)
        }),
    })
    .pipe(
      Effect.scoped,
      Effect.onExit((exit) =>
        Effect.sync(() => {
          driven.exit = exit
        }),
      ),
      Effect.exit,
      Effect.forkScoped,
    )
  return { driven, stop: Fiber.interrupt(fiber) }
})

/** All batches of a scan. */
export const scan = (source: Source<Selector>, from: number, to: number, interests = transferInterests()) =>
  Stream.runCollect(source.scan({ from, to, interests }))

/** Reads lazily decoded fields into plain objects, as the shape tells them. */
export const plain = (type: RecordType, value: any): any => {
  const read = (fieldType: any, field: any): any => {
    if (field === null) return null
    if (fieldType.kind === "record") return plain(fieldType, field)
    return fieldType.kind === "list" ? field.map((item: any) => read(fieldType.items, item)) : field
  }
  const own = type.forms === undefined ? type : ofForm(new Map(Object.entries(type.forms)), value)!
  return Object.fromEntries(Object.entries(own.fields).map(([name, field]) => [name, read(field, value[name])]))
}

/** What a selector yields, as core compiles it. Throws if the selector is refused. */
export const shapeOf = (selector: Selector): EventShape => {
  const described = evmRpc.describe(selector)
  if ("problems" in described) throw new Error(JSON.stringify(described.problems))
  return { ...described, address: evmRpc.address }
}

/** The JSON of an event. */
export const jsonOf = (selector: Selector, event: SourceEvent): any =>
  eventRenderer(shapeOf(selector))(event.fields()) as Json

/** The id of an event's match for the monitor `watch` of the network `chain`. */
export const idOf = (selector: Selector, event: SourceEvent): string =>
  matchIdDeriver(shapeOf(selector), { network: "chain", monitor: "watch" })(event.cursor, event.index, event.fields())

/** The interests of one monitor, `watch`. */
export const watching = (selector: Selector, version = 1): InterestSet<Selector> => ({
  version,
  interests: [{ id: "watch", selector }],
})

/** `block:logIndex` of each event. */
export const positions = (events: ReadonlyArray<SourceEvent>): ReadonlyArray<string> =>
  events.map(({ cursor }) => `${cursor.primary}:${cursor.secondary - 2 ** 20}`)
