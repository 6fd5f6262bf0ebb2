import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SourceRun } from "../../../core/index.ts"
import { resourcesOf, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { allTransfers } from "./faults/support.ts"

describe("a source that resumes", () => {
  it.live("gets the hashes of all that can still be taken back, however deep the journal is", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 5_000 }, () => []))
      const scripted = scriptedSource(feed)
      const resumed: Array<SourceRun<unknown>["resume"]> = []
      const plugin = {
        ...scripted,
        make: (config: Parameters<typeof scripted.make>[0]) =>
          Effect.map(scripted.make(config), (source) => ({
            ...source,
            run: (run: Parameters<typeof source.run>[0]) => {
              resumed.push(run.resume)
              return source.run(run)
            },
          })),
      }
      const runtime = yield* startRuntime({
        plugins: [plugin],
        resources: {
          networks: [{ id: "test", module: "scripted", config: { range: 1_000 }, journalDepth: 6_000 }],
          monitors: [allTransfers(["a"])],
          sinks: [{ id: "a", deliver: () => Effect.void }],
        },
      })
      yield* waitForCheckpoint(runtime, "test", 5_000)
      yield* resourcesOf(runtime).pauseNetwork("test")
      yield* resourcesOf(runtime).resumeNetwork("test")
      yield* waitUntil("the source runs again", () => resumed.length === 2)
      assert.strictEqual(resumed[1]!.depth, 6_000)
      assert.deepStrictEqual(
        resumed[1]!.anchors,
        Array.from({ length: 5_000 }, (_, i) => feed.anchor(5_000 - i)),
      )
    }).pipe(Effect.scoped),
  )
})
