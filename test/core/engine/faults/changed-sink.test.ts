import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { resourcesOf } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, Gate, startOver, transfer } from "./support.ts"
import { receiver, waitFor, waitForLetters } from "../policies/support.ts"

describe("a change of a sink", () => {
  it.live("that comes while rows are marked offered is heeded before the first of them is sent", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const delivering = new Gate("closed")
      const offering = new Gate("open")
      const a = receiver("a", { before: (what) => (what === "+1" ? delivering.pass : Effect.never) })
      let minted = 0
      const { runtime } = yield* startOver(
        ({ mint, settle }) => ({
          mint: (owner, input) =>
            Effect.tap(mint(owner, input), () => Effect.sync(() => (minted += input.matches.length))),
          settle: (owner, input) =>
            input.offered.length === 0 ? settle(owner, input) : Effect.andThen(settle(owner, input), offering.pass),
        }),
        { plugins: [scriptedSource(feed)], resources: definitions([a.sink]), settings: { drainTimeoutMs: 100 } },
      )
      yield* delivering.reached
      yield* offering.close
      feed.append([transfer(2)])
      yield* waitFor("2 is minted", () => minted === 2)
      yield* delivering.open
      yield* offering.reached
      yield* resourcesOf(runtime).pauseSink("a")
      yield* offering.open
      yield* waitForLetters(runtime, 1)
      assert.deepStrictEqual(a.attempts, ["+1"])
    }),
  )
})
