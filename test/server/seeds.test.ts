import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { followSeeds, readSeeds, type SeedsRefused, SeedTarget } from "../../server/seeds.ts"
import { FakeEngine } from "./fake-engine.ts"
import { until } from "./serve-fake.ts"

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "seeds-"))
  for (const folder of ["networks", "monitors"]) await mkdir(join(directory, folder))
  await writeFile(join(directory, "networks/b.json"), `{"id":"b"}`)
  await writeFile(join(directory, "networks/a.json"), `{"id":"a"}`)
  await writeFile(join(directory, "networks/notes.txt"), "not a seed")
  await writeFile(join(directory, "monitors/m.json"), `{"id":"m"}`)
})
afterEach(() => rm(directory, { recursive: true }))

const read = () =>
  Effect.runPromise(
    SeedTarget.use(({ check }) => Effect.result(readSeeds(directory, check))).pipe(
      Effect.provide(Layer.merge(NodeServices.layer, new FakeEngine().layer)),
    ),
  )

/** Follows the directory until the returned close is called. */
const follow = async (engine: FakeEngine) => {
  const log: Array<string> = []
  const scope = Scope.makeUnsafe()
  const exit = await Effect.runPromiseExit(
    followSeeds(directory).pipe(
      Scope.provide(scope),
      Effect.provide(
        Layer.mergeAll(
          NodeServices.layer,
          engine.layer,
          Logger.layer([Logger.make(({ message }) => void log.push(String(message)))]),
        ),
      ),
    ),
  )
  return { exit, log, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

describe("the seeds directory", () => {
  it("is read by kind, in the order of the names", async () => {
    const result = await read()
    assert.deepEqual(result._tag === "Success" ? result.success : null, [
      { kind: "network", path: "networks/a.json", text: `{"id":"a"}` },
      { kind: "network", path: "networks/b.json", text: `{"id":"b"}` },
      { kind: "monitor", path: "monitors/m.json", text: `{"id":"m"}` },
    ])
  })

  it("tells what lies where no seeds are read", async () => {
    await mkdir(join(directory, "monitor"))
    const { log, close } = await follow(new FakeEngine())
    assert.isTrue(log.some((line) => line.startsWith("monitor in ") && line.includes("networks/, monitors/, sinks/")))
    await close()
  })

  it("lists every file that cannot be read, and what is wrong with the others", async () => {
    await writeFile(join(directory, "networks/a.json"), "refuse me")
    await mkdir(join(directory, "networks/c.json"))
    await mkdir(join(directory, "monitors/d.json"))
    const result = await read()
    assert.isTrue(result._tag === "Failure" && result.failure._tag === "SeedsRefused")
    const { problems } = (result as { readonly failure: SeedsRefused }).failure
    assert.deepEqual(
      problems.map(({ path }) => path),
      ["networks/c.json", "monitors/d.json", "networks/a.json"],
    )
  })

  it("is applied at once, and again when a file changed, came, or was replaced", async () => {
    const engine = new FakeEngine()
    const { close, exit } = await follow(engine)
    assert.isTrue(Exit.isSuccess(exit))
    assert.strictEqual(engine.seeds.length, 1)
    await mkdir(join(directory, "sinks"))
    await writeFile(join(directory, "sinks/s.json"), `{"id":"s"}`)
    await until(() => engine.seeds.at(-1)!.length === 4, "the new file was applied")
    await writeFile(join(directory, "networks/a.json"), `{"id":"a","changed":1}`)
    await until(() => engine.seeds.at(-1)![0]!.text.includes("changed"), "the changed file was applied")
    await writeFile(join(directory, "b.tmp"), `{"id":"b","replaced":1}`)
    await rename(join(directory, "b.tmp"), join(directory, "networks/b.json"))
    await until(() => engine.seeds.at(-1)![1]!.text.includes("replaced"), "the replaced file was applied")
    await close()
  })

  it("stops the start when it is refused, with the files' names", async () => {
    await writeFile(join(directory, "networks/a.json"), "refuse me")
    await writeFile(join(directory, "monitors/m.json"), "refuse me")
    const { exit, close } = await follow(new FakeEngine())
    assert.match(JSON.stringify(exit), /networks\/a\.json.*asks to be refused.*monitors\/m\.json/)
    await close()
  })

  it("changes nothing when a later set is refused, and goes on once it is mended", async () => {
    const engine = new FakeEngine()
    const { close, log } = await follow(engine)
    await writeFile(join(directory, "networks/a.json"), "refuse me")
    await until(() => log.some((line) => line.includes("networks/a.json: asks to be refused")), "the refusal is logged")
    assert.strictEqual(engine.seeds.length, 1)
    await writeFile(join(directory, "networks/a.json"), `{"id":"a","mended":1}`)
    await until(() => engine.seeds.length === 2, "the mended set was applied")
    await close()
  })
})
