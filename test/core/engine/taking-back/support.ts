import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import {
  Blockwatcher,
  type DeadLetter,
  DeadLetters,
  type Delivery,
  type HostSink,
  type RuntimeOptions,
  type SinkEvent,
  Storage,
} from "../../../../core/index.ts"
import { compareCursors, endOf } from "../../../../core/model/cursor.ts"
import type { Runtime } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { waitForNetwork } from "../faults/support.ts"

/** One thing that a sink was told, as `+12` or `-12` by the value of its transfer, with the id of the delivery. */
export interface Told {
  readonly what: string
  readonly id: string
  readonly body: string
}

/** A sink that keeps what it is told, in order. `before` runs ahead of each attempt, and may fail or wait. */
export const listener = (
  id: string,
  over: Partial<HostSink> & {
    readonly before?: (event: SinkEvent, delivery: Delivery) => Effect.Effect<void, any>
  } = {},
) => {
  const told: Array<Told> = []
  const values = new Map<string, string>()
  const { before = () => Effect.void, ...rest } = over
  const deliver = (event: SinkEvent, delivery: Delivery) => {
    if (event.type === "match") values.set(event.id, (event.event["args"] as { readonly value: string }).value)
    return Effect.andThen(
      before(event, delivery),
      Effect.sync(() => {
        const tell = (what: string) => told.push({ what, id: delivery.id, body: delivery.body })
        if (event.type === "match") tell(`+${values.get(event.id)}`)
        else if (event.type === "retracted") tell(`-${values.get(event.match_id) ?? "?"}`)
      }),
    )
  }
  return {
    told,
    /** What it was told, without the ids. */
    words: () => told.map(({ what }) => what),
    /** The value of a match that it was offered, by the match's id. */
    valueOf: (match: string) => values.get(match),
    /** The values that stand for a consumer that applies what it is told in order. */
    standing: () => {
      const standing = new Set<string>()
      for (const { what } of told) {
        if (what.startsWith("+")) standing.add(what.slice(1))
        else standing.delete(what.slice(1))
      }
      return [...standing].toSorted()
    },
    sink: { id, retry: { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 2 }, ...rest, deliver } satisfies HostSink,
  }
}

/** Whether an event is a retraction. */
export const isRetraction = ({ type }: SinkEvent): boolean => type === "retracted"

export const waitForState = (runtime: Runtime, state: string) =>
  waitForNetwork(runtime, `the network is ${state}`, (network) => network.state === state)

/** Waits until everything up to the end of a block is finished. */
export const waitForEnd = (runtime: Runtime, primary: number) =>
  waitForNetwork(
    runtime,
    `the checkpoint is at the end of ${primary}`,
    ({ checkpoint }) => checkpoint !== null && compareCursors(checkpoint.cursor, endOf(primary)) === 0,
  )

/** Waits until a sink was told so many things; they are these. */
export const waitForWords = ({ words }: ReturnType<typeof listener>, expected: ReadonlyArray<string>) =>
  waitUntil(`it is told ${expected.join(" ")}`, () => words().length >= expected.length).pipe(
    Effect.andThen(Effect.sync(() => assert.deepStrictEqual(words(), [...expected]))),
  )

/** The dead letters of the network `test`, in the order of dying. */
export const lettersOf = (runtime: Context.Context<DeadLetters>): Effect.Effect<ReadonlyArray<DeadLetter>> =>
  Context.get(runtime, DeadLetters)
    .list({ network: "test", first: 1_000, after: null })
    .pipe(
      Effect.map(({ items }) => items.map(({ node }) => node)),
      Effect.orDie,
    )

/** Starts a runtime over a database that others use too. */
export const runOver = (storage: Storage["Service"], options: Omit<RuntimeOptions<never>, "storage">) =>
  Layer.build(Blockwatcher.layer({ storage: Layer.succeed(Storage, storage), ...options }))
