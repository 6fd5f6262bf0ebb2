import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, transfer } from "../faults/support.ts"
import { receiver, waitForWords } from "../policies/support.ts"
import { waitForEnd } from "../taking-back/support.ts"

describe("a network that rests", () => {
  for (const buffer of ["MEMORY", "DURABLE"] as const) {
    it.live(`sends the retractions of a rewind all the same: ${buffer}`, () =>
      Effect.gen(function* () {
        const feed = new ScriptedFeed()
        feed.append([transfer(1)], [transfer(2)])
        const a = receiver("a", { buffer })
        const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
        yield* waitForWords(a, ["+1", "+2"])
        yield* waitForEnd(runtime, 2)
        yield* resourcesOf(runtime).pauseNetwork("test")
        yield* resourcesOf(runtime).rewindNetwork("test", { primary: 1, secondary: 2_147_483_647 })
        yield* waitForWords(a, ["+1", "+2", "-2"])
      }),
    )
  }
})
