import { Deferred, Effect, Fiber, Latch } from "effect"
import { type Cursor, formatCursor, isAfter } from "../model/cursor.ts"
import { broken, describe, interruptPromptly, must } from "./conformance-check.ts"
import type { InterestSet, LateBatch, Resume, Source, SourceBatch } from "./source.ts"

/** The depth of the journal. */
const DEPTH = 1024

/** What a run handed over. */
export interface Recorded {
  readonly batches: ReadonlyArray<SourceBatch>
  readonly late: ReadonlyArray<LateBatch>
}

/** What a run is given of earlier ones. */
interface Resumed extends Pick<Resume, "anchors" | "records" | "start"> {
  readonly after: Cursor
}

/**
 * Runs a source behind `after` until it emitted all up to `until`, then interrupts it. The pipeline is slow and refuses
 * a second `emit` beside one that waits; each reading of the interests is a new version.
 */
export const record = Effect.fnUntraced(function* <Selector>(
  source: Source<Selector>,
  set: InterestSet<Selector>,
  range: Resumed & { readonly until: Cursor },
) {
  const batches: Array<SourceBatch> = []
  const late: Array<LateBatch> = []
  const done = yield* Deferred.make<void, ReturnType<typeof broken>>()
  let version = 0
  let busy = false
  const wrong = (reason: string) => Deferred.fail(done, broken(reason))
  const versionFault = (batch: number): string | undefined => {
    if (batch > version) return `a batch names version ${batch} of the interests, which was never handed out`
    const before = batches.at(-1)?.interests ?? 1
    return batch < before ? `a batch names version ${batch} of the interests after one of version ${before}` : undefined
  }
  const fiber = yield* Effect.forkChild(
    Effect.scoped(
      source.run({
        resume: {
          cursor: range.after,
          anchors: range.anchors,
          depth: DEPTH,
          records: range.records,
          start: range.start,
        },
        interests: Effect.sync(() => ({ ...set, version: ++version })),
        emit: Effect.fnUntraced(function* (batch) {
          const fault = busy ? "emit was called while an earlier call was still waiting" : versionFault(batch.interests)
          if (fault !== undefined) yield* wrong(fault)
          busy = true
          yield* Effect.sleep("2 millis")
          busy = false
          batches.push(batch)
          if (!isAfter(range.until, batch.upTo)) yield* Deferred.succeed(done, undefined)
        }),
        late: (batch) => Effect.sync(() => void late.push(batch)),
        head: (cursor) =>
          Number.isSafeInteger(cursor.primary) ? Effect.void : wrong(`head tells ${formatCursor(cursor)}, no position`),
        trouble: () => Effect.void,
      }),
    ).pipe(
      Effect.matchEffect({
        onFailure: (error) => wrong(`run failed: ${describe(error)}`),
        onSuccess: (outcome) =>
          outcome._tag === "Completed" && batches.at(-1)?.upTo.primary === range.until.primary
            ? Deferred.succeed(done, undefined)
            : wrong(`run ended as ${outcome._tag} before it had emitted all up to ${formatCursor(range.until)}`),
      }),
    ),
  )
  yield* Deferred.await(done)
  yield* interruptPromptly(fiber)
  return { batches, late } satisfies Recorded
})

/** Runs a source into a pipeline that is full, and checks that it waits there and lets itself be interrupted. */
export const waitsWhileFull = Effect.fnUntraced(function* <Selector>(
  source: Source<Selector>,
  set: InterestSet<Selector>,
  after: Cursor,
) {
  const full = yield* Latch.make(false)
  let calls = 0
  const fiber = yield* Effect.forkChild(
    Effect.scoped(
      source.run({
        resume: { cursor: after, anchors: [], depth: DEPTH, records: [], start: after },
        interests: Effect.succeed(set),
        emit: () => {
          calls++
          return Effect.andThen(full.open, Effect.never)
        },
        late: () => Effect.never,
        head: () => Effect.void,
        trouble: () => Effect.void,
      }),
    ),
  )
  const first = yield* Effect.raceFirst(full.await, Fiber.await(fiber))
  if (first !== undefined) return yield* broken("run ended before it emitted anything")
  yield* Effect.sleep("200 millis")
  yield* must(calls === 1, `emit was called ${calls} times while the pipeline was full`)
  yield* must(fiber.pollUnsafe() === undefined, "run ended while the pipeline was full")
  yield* interruptPromptly(fiber)
})
