import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Scope } from "effect"
import { execFileSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Blockwatcher, Resources } from "../../../../core/index.ts"
import { isAfter } from "../../../../core/model/cursor.ts"
import { open } from "../../../../core/storage/sqlite/open.ts"
import { startRuntime, type Runtime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, transfer, waitForNetwork } from "../../engine/faults/support.ts"
import { lettersOf, listener, waitForEnd, waitForWords } from "../../engine/taking-back/support.ts"

/** A database that can be brought into trouble. `says`: what the network then tells. */
interface Troubled {
  readonly path: string
  readonly begin: () => void
  readonly end: () => void
  readonly says: string
}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "blockwatcher-troubles-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true })),
)

/** Another connection holds the write lock. */
const locked = Effect.gen(function* () {
  const path = join(yield* folder, "test.db")
  const { native } = yield* open(path)
  return {
    path,
    begin: () => void native.exec("BEGIN IMMEDIATE"),
    end: () => void native.exec("COMMIT"),
    says: "database is locked",
  }
})

const mount = (at: string) => execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "none", at], { stdio: "ignore" })
const unmount = (at: string) => execFileSync("umount", ["-l", at], { stdio: "ignore" })

const canMount = ((): boolean => {
  const at = mkdtempSync(join(tmpdir(), "blockwatcher-mount-"))
  try {
    mount(at)
    unmount(at)
    return true
  } catch {
    return false
  } finally {
    rmSync(at, { recursive: true })
  }
})()

/** A disk of its own, filled by another file. */
const full = Effect.gen(function* () {
  const disk = yield* folder
  yield* Effect.acquireRelease(
    Effect.sync(() => mount(disk)),
    () => Effect.sync(() => unmount(disk)),
  )
  const filler = join(disk, "filler")
  return {
    path: join(disk, "test.db"),
    begin: () => {
      for (const piece of [1 << 20, 4096, 1]) {
        try {
          while (true) appendFileSync(filler, Buffer.alloc(piece))
        } catch (error) {
          assert.propertyVal(error, "code", "ENOSPC")
        }
      }
    },
    end: () => rmSync(filler),
    says: "database or disk is full",
  }
})

const values = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i)
const first = values(0, 10)
const second = values(10, 20)
const plus = (numbers: ReadonlyArray<number>) => numbers.map((n) => `+${n}`)
const minus = (numbers: ReadonlyArray<number>) => numbers.map((n) => `-${n}`)

/** Lets go of the trouble once the network and the health of the runtime have told of it. */
const tell = Effect.fnUntraced(function* (runtime: Runtime, { says, end }: Troubled) {
  yield* waitForNetwork(runtime, `the network tells that ${says}`, ({ error }) => error?.includes(says) === true)
  const { networks, storage } = yield* Context.get(runtime, Blockwatcher).health
  assert.include(networks[0]!.error, says)
  // It can be read all the same.
  assert.isNull(storage)
  return Effect.sync(end)
})

const started = Effect.fnUntraced(function* (
  trouble: Effect.Effect<Troubled, unknown, Scope.Scope>,
  before: (what: string, troubled: Troubled) => void,
) {
  const troubled = yield* Effect.orDie(trouble)
  const feed = new ScriptedFeed()
  feed.append(first.map(transfer))
  const a = listener("a", {
    before: (event) =>
      Effect.sync(() => {
        if (event.type === "match") before(`+${a.valueOf(event.id)}`, troubled)
        else if (event.type === "retracted") before(`-${a.valueOf(event.match_id)}`, troubled)
      }),
  })
  const runtime = yield* startRuntime({
    path: troubled.path,
    plugins: [scriptedSource(feed)],
    resources: definitions([a.sink]),
  })
  yield* waitForEnd(runtime, 1)
  return { troubled, feed, a, runtime }
})

const isWell = Effect.fnUntraced(function* (runtime: Runtime) {
  yield* waitForNetwork(runtime, "all is well", ({ state, error }) => state === "RUNNING" && error === null)
  assert.deepStrictEqual(yield* lettersOf(runtime), [])
})

const kinds = [
  { name: "is locked by another connection", trouble: locked, possible: true },
  { name: "has no space left", trouble: full, possible: canMount },
]

for (const { name, trouble, possible } of kinds) {
  describe.skipIf(!possible)(`a database that ${name}`, { concurrent: true }, () => {
    it.live("keeps matches from being told before they are written, and they are told when it ends", () =>
      Effect.gen(function* () {
        const { troubled, feed, a, runtime } = yield* started(trouble, () => {})
        troubled.begin()
        feed.append(second.map(transfer))
        const end = yield* tell(runtime, troubled)
        assert.deepStrictEqual(a.words(), plus(first))
        yield* end
        yield* waitForWords(a, plus([...first, ...second]))
        yield* waitForEnd(runtime, 2)
        yield* isWell(runtime)
      }),
    )

    it.live("keeps the checkpoint before deliveries whose outcome is not written, and none is made twice", () =>
      Effect.gen(function* () {
        const { troubled, feed, a, runtime } = yield* started(trouble, (what, { begin }) => {
          if (what === "+15") begin()
        })
        feed.append(second.map(transfer))
        const end = yield* tell(runtime, troubled)
        yield* waitForNetwork(
          runtime,
          "deliveries are in flight",
          ({ inFlightEvents, checkpoint }) =>
            inFlightEvents > 0 && isAfter({ primary: 2, secondary: 1_048_576 + 5 }, checkpoint!.cursor),
        )
        yield* end
        yield* waitForEnd(runtime, 2)
        assert.deepStrictEqual(a.words(), plus([...first, ...second]))
        yield* isWell(runtime)
      }),
    )

    it.live("keeps a fork from being told before it is recorded", () =>
      Effect.gen(function* () {
        const { troubled, feed, a, runtime } = yield* started(trouble, () => {})
        feed.append(second.map(transfer))
        yield* waitForEnd(runtime, 2)
        troubled.begin()
        feed.fork(1, "x", [transfer(100)])
        const end = yield* tell(runtime, troubled)
        assert.deepStrictEqual(a.words(), plus([...first, ...second]))
        yield* end
        yield* waitForWords(a, [...plus([...first, ...second]), ...minus(second), "+100"])
        yield* isWell(runtime)
      }),
    )

    it.live("in the middle of retractions keeps the network from going on, and none is made twice", () =>
      Effect.gen(function* () {
        const { troubled, feed, a, runtime } = yield* started(trouble, (what, { begin }) => {
          if (what === "-15") begin()
        })
        feed.append(second.map(transfer))
        yield* waitForEnd(runtime, 2)
        feed.fork(1, "x", [transfer(100)])
        const end = yield* tell(runtime, troubled)
        yield* waitForNetwork(runtime, "it takes back", ({ state }) => state === "INVALIDATING")
        assert.notInclude(a.words(), "+100")
        yield* end
        yield* waitForWords(a, [...plus([...first, ...second]), ...minus(second), "+100"])
        yield* isWell(runtime)
      }),
    )

    it.live("refuses a change of the resources with its reason, and takes it when it ends", () =>
      Effect.gen(function* () {
        const { troubled, a, runtime } = yield* started(trouble, () => {})
        const resources = Context.get(runtime, Resources)
        troubled.begin()
        for (const refused of [
          yield* Effect.flip(resources.pauseNetwork("test")),
          yield* Effect.flip(resources.putSink({ ...log, id: "log" })),
        ]) {
          assert.deepInclude(refused, { _tag: "StorageError", retryable: true })
          assert.include(refused.message, troubled.says)
        }
        assert.lengthOf(yield* resources.sinks, 1)
        yield* waitForNetwork(runtime, "it was not paused", ({ state }) => state !== "PAUSED")
        troubled.end()
        yield* resources.putSink({ ...log, id: "log" })
        assert.lengthOf(yield* resources.sinks, 2)
        assert.deepStrictEqual(a.words(), plus(first))
        yield* isWell(runtime)
      }),
    )
  })
}

/** A second definition of the listener's function. */
const log = { module: "host:a", config: {} }
