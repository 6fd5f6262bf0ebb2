import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, transfer } from "../faults/support.ts"
import { startProcess, waitForState } from "../owners/support.ts"
import { lettersOf, waitForEnd } from "../taking-back/support.ts"
import { lettersIn, refuser } from "./support.ts"

describe("the dead letters of a network that another process runs", () => {
  it.live("are listed, and answer NotOwner to everything else", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const a = refuser("a")
      const start = startProcess(path, { plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      const owner = yield* start
      yield* waitForEnd(owner.runtime, 1)
      const other = yield* start
      yield* waitForState(other.runtime, "STANDBY")
      const letters = lettersIn(other.runtime)
      const [letter] = yield* lettersOf(other.runtime)
      const filter = { network: "test" }
      const refused: Record<string, Effect.Effect<unknown, { readonly _tag: string }>> = {
        replay: letters.replay(letter!.id),
        "replay of all": letters.replayAll(filter, 10),
        discard: letters.discard(letter!.id),
        "discard of all": letters.discardAll(filter),
        "offer of retractions": letters.offerRetractions("test", "a"),
      }
      for (const [what, mutation] of Object.entries(refused)) {
        assert.strictEqual((yield* Effect.flip(mutation))._tag, "NotOwner", what)
      }
      assert.strictEqual((yield* lettersOf(owner.runtime)).length, 1)
      a.accept()
      assert.isTrue((yield* lettersIn(owner.runtime).replay(letter!.id)).delivered)
      assert.deepStrictEqual(yield* lettersOf(other.runtime), [])
    }),
  )
})
