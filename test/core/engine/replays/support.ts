import { Context, Effect, Latch } from "effect"
import { type DeadLetter, DeadLetters, type Delivery, type HostSink, Permanent } from "../../../../core/index.ts"
import { networkNow, startRuntime } from "../../../support/runtime.ts"
import type { Runtime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, transfer } from "../faults/support.ts"
import { lettersOf, listener, waitForEnd } from "../taking-back/support.ts"

export const NO = "permanent: no"

/** A sink that refuses everything with `NO` until it is told otherwise. */
export const refuser = (id: string, over: Partial<HostSink> = {}) => {
  const offered: Array<Delivery> = []
  const answer: { of: (delivery: Delivery) => Effect.Effect<void, any> } = { of: () => new Permanent({ reason: "no" }) }
  const recorded = listener(id, {
    ...over,
    before: (_, delivery) =>
      Effect.suspend(() => {
        offered.push(delivery)
        return answer.of(delivery)
      }),
  })
  return {
    ...recorded,
    /** Every attempt that was begun. */
    offered,
    /** From now on each attempt ends so, successfully unless it fails. */
    answer: (of: (delivery: Delivery) => Effect.Effect<void, any>) => {
      answer.of = of
    },
    accept: () => {
      answer.of = () => Effect.void
    },
  }
}

export type Refuser = ReturnType<typeof refuser>

/** An attempt that waits until it is let go, and tells when it began. */
export const held = () => {
  const begun = Latch.makeUnsafe(false)
  const letGo = Latch.makeUnsafe(false)
  const wait = Effect.suspend(() => {
    begun.openUnsafe()
    return letGo.await
  })
  return { wait, begun: begun.await, letGo: letGo.open }
}

export const lettersIn = (runtime: Context.Context<DeadLetters>) => Context.get(runtime, DeadLetters)

/**
 * Starts a runtime whose network `test` has matched the transfers 1 to `count`, one a block, of which every delivery to the
 * sinks has died.
 */
export const startWithLetters = Effect.fnUntraced(function* (
  count: number,
  sinks: readonly [Refuser, ...Array<Refuser>],
  options: Omit<Partial<Parameters<typeof startRuntime>[0]>, "plugins" | "resources"> & {
    readonly others?: ReadonlyArray<HostSink>
  } = {},
) {
  const { others = [], ...rest } = options
  const feed = new ScriptedFeed()
  feed.append(...Array.from({ length: count }, (_, i) => [transfer(i + 1)]))
  const resources = {
    ...definitions([sinks[0].sink, ...sinks.slice(1).map(({ sink }) => sink), ...others]),
    monitors: [allTransfers(sinks.map(({ sink }) => sink.id))],
  }
  const runtime = yield* startRuntime({ ...rest, plugins: [scriptedSource(feed)], resources })
  yield* waitForEnd(runtime, count)
  const letters = yield* lettersOf(runtime)
  for (const sink of sinks) sink.offered.length = 0
  return { feed, runtime, letters, deadLetters: lettersIn(runtime) }
})

/** What a letter says of its death. */
export const deathOf = ({ attempts, reason }: DeadLetter) => `${attempts} ${reason}`

export const waitForLetters = (runtime: Runtime, count: number) =>
  waitUntil(
    `there are ${count} dead letters`,
    Effect.map(networkNow(runtime, "test"), ({ deadLetterCount }) => deadLetterCount === count),
  )
