import { setImmediate } from "node:timers/promises"
import { assert } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Delivery, DeliveryError, HostSink, SinkEvent } from "../../../../core/index.ts"
import { networkNow, type Runtime } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { lettersOf } from "../taking-back/support.ts"

/** Something that a sink was told. */
export interface Told {
  /** `+1`, `-1` or `[1 2]`, by the values of the transfers. */
  readonly what: string
  readonly id: string
  readonly body: string
}

const valueOf = (event: { readonly [key: string]: unknown }): string =>
  (event["args"] as { readonly value: string }).value

/** A sink that keeps what it is told. `before` runs ahead of each attempt, and may fail or wait. */
export const receiver = (
  id: string,
  over: Partial<HostSink> & {
    readonly before?: (what: string, delivery: Delivery) => Effect.Effect<void, DeliveryError>
  } = {},
) => {
  const told: Array<Told> = []
  const attempts: Array<string> = []
  const values = new Map<string, string>()
  const { before = () => Effect.void, ...rest } = over
  const describe = (event: SinkEvent): string => {
    switch (event.type) {
      case "match": {
        values.set(event.id, valueOf(event.event))
        return `+${values.get(event.id)}`
      }
      case "digest": {
        for (const match of event.matches) values.set(match.id, valueOf(match.event))
        return `[${event.matches.map((match) => values.get(match.id)).join(" ")}]`
      }
      case "retracted":
        return `-${values.get(event.match_id) ?? "?"}`
    }
  }
  const deliver = (event: SinkEvent, delivery: Delivery) =>
    Effect.suspend(() => {
      const what = describe(event)
      attempts.push(what)
      return Effect.andThen(
        before(what, delivery),
        Effect.sync(() => {
          assert.deepStrictEqual(JSON.parse(delivery.body), event)
          told.push({ what, id: delivery.id, body: delivery.body })
        }),
      )
    })
  const sink: HostSink = { id, retry: { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 2 }, ...rest, deliver }
  return { told, attempts, words: () => told.map(({ what }) => what), sink }
}

export type Receiver = ReturnType<typeof receiver>

/** Runs in real time, also where the test's clock stands still. */
const inRealTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) => ("withLive" in clock ? TestClock.withLive(effect) : effect))

/** Waits, while the test's clock stands still, until a sink was told these things, and no others. */
export const waitForWords = (
  { words }: Pick<Receiver, "words">,
  expected: ReadonlyArray<string>,
): Effect.Effect<void> =>
  waitUntil(`it is told ${expected.join(" ")}`, () => words().length >= expected.length).pipe(
    Effect.catchDefect(() => Effect.void),
    Effect.andThen(Effect.sync(() => assert.deepStrictEqual(words(), [...expected]))),
    inRealTime,
  )

/** Waits, while the test's clock stands still, until something holds. */
export const waitFor = (what: string, holds: Effect.Effect<boolean> | (() => boolean)): Effect.Effect<void> =>
  inRealTime(waitUntil(what, holds))

/** Waits until the network `test` has so many dead letters; answers why, how often and in which order. */
export const waitForLetters = (runtime: Runtime, count: number) =>
  waitFor(
    `there are ${count} dead letters`,
    Effect.map(lettersOf(runtime), (letters) => letters.length >= count),
  ).pipe(
    Effect.andThen(lettersOf(runtime)),
    Effect.map((letters) =>
      letters.map(({ payload, attempts, reason, kind }) => ({
        what: `${kind === "match" ? "+" : "-"}${payload === null ? "?" : valueOf(JSON.parse(payload).event)}`,
        attempts,
        reason,
      })),
    ),
  )

/** Turns of the event loop in which the workers take up what was just minted: no clock goes on before they have. */
const turns = Effect.promise(async () => {
  for (let turn = 0; turn < 50; turn++) await setImmediate()
})

/** Waits until so many positions of the network `test` have matches that are not finished. */
export const waitForInFlight = (runtime: Runtime, count: number) =>
  waitFor(
    `${count} are in flight`,
    Effect.map(networkNow(runtime, "test"), ({ inFlightEvents }) => inFlightEvents === count),
  ).pipe(Effect.andThen(turns))
