import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { layerSqlite, Storage } from "../../../../core/index.ts"
import { networkNow, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, Gate, transfer } from "../faults/support.ts"
import { isRetraction, listener, runOver, waitForEnd, waitForWords } from "./support.ts"

/** Each delivery with the bytes that it had, however often it was told. */
const bodies = ({ told }: ReturnType<typeof listener>): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const { id, body } of told) found.set(id, (found.get(id) ?? new Set()).add(body))
  return found
}

const five = () => {
  const feed = new ScriptedFeed()
  feed.append(...Array.from({ length: 5 }, (_, i) => [transfer(i + 1)]))
  return feed
}

const replaced = ["+1", "+2", "+3", "+4", "+5", "-2", "-3", "-4", "-5", "+20", "+30", "+40", "+50"]
const replacement = [2, 3, 4, 5].map((n) => [transfer(10 * n)])

describe("an invalidation that a stop interrupts", () => {
  for (const [how, grace] of [
    ["the attempt under way is finished", 10_000],
    ["an attempt that takes too long is made again", 100],
  ] as const) {
    it.live(`is finished by the next start from where it stood: ${how}`, () =>
      Effect.gen(function* () {
        const path = yield* databaseFile
        const feed = five()
        const sending = new Gate("open")
        let retractions = 0
        const a = listener("a", {
          before: (event) =>
            Effect.suspend(() => {
              if (!isRetraction(event)) return Effect.void
              retractions++
              return retractions === 2 ? Effect.andThen(sending.close, sending.pass) : Effect.void
            }),
        })
        const options = {
          path,
          plugins: [scriptedSource(feed)],
          resources: definitions([a.sink]),
          settings: { drainTimeoutMs: grace },
        }
        const scope = yield* Scope.make()
        const first = yield* startRuntime(options).pipe(Scope.provide(scope))
        yield* waitForEnd(first, 5)
        feed.fork(1, "x", ...replacement)
        yield* sending.reached
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        if (grace > 1_000) {
          yield* Effect.sleep("50 millis")
          yield* sending.open
        }
        yield* waitUntil("it is closed", () => closing.pollUnsafe() !== undefined)
        const told = grace > 1_000 ? 7 : 6
        assert.deepStrictEqual(a.words(), replaced.slice(0, told))
        const runtime = yield* startRuntime(options)
        yield* waitForWords(a, replaced)
        yield* waitForEnd(runtime, 5)
        for (const [id, { size }] of bodies(a)) assert.strictEqual(size, 1, id)
        assert.isNull((yield* networkNow(runtime, "test")).error)
      }),
    )
  }
})

/** The durable steps of an invalidation. */
const steps = ["invalidate", "retract", "settle", "rewind"] as const

/**
 * The storage as a process sees it that ends right after one step was written: nothing that it calls then answers
 * before `buried`.
 */
const dyingAfter = (step: (typeof steps)[number], storage: Storage["Service"], buried: Effect.Effect<void>) => {
  const state = { invalidating: false, dead: false }
  const mortal = Object.fromEntries(
    Object.entries(storage).map(([name, method]) => [
      name,
      typeof method !== "function"
        ? method
        : (...args: ReadonlyArray<never>) =>
            Effect.suspend(() => {
              if (state.dead) return Effect.andThen(buried, (method as (...all: typeof args) => any)(...args))
              if (name === "invalidate") state.invalidating = true
              const last = name === step && state.invalidating
              const call = (method as (...all: typeof args) => Effect.Effect<unknown, unknown>)(...args)
              if (!last) return call
              return Effect.andThen(call, () => {
                state.dead = true
                return Effect.andThen(buried, Effect.never)
              })
            }),
    ]),
  ) as unknown as Storage["Service"]
  return { state, mortal }
}

describe("an invalidation of a process that ends right after it wrote", () => {
  for (const step of steps) {
    it.live(`${step} is finished by the next one`, () =>
      Effect.gen(function* () {
        const storage = Context.get(yield* Layer.build(layerSqlite({ path: ":memory:" })), Storage)
        const buried = new Gate("closed")
        const { state, mortal } = dyingAfter(step, storage, buried.pass)
        const feed = five()
        let first = true
        const a = listener("a", { before: () => (first && state.dead ? Effect.never : Effect.void) })
        const options = {
          plugins: [scriptedSource(feed)],
          resources: definitions([a.sink]),
          settings: { drainTimeoutMs: 50 },
        }
        const dying = yield* runOver(mortal, options)
        yield* waitForEnd(dying, 5)
        feed.fork(1, "x", ...replacement)
        yield* waitUntil("it has ended", () => state.dead)
        first = false
        const owner = { network: "test", epoch: 1 }
        yield* storage.release(owner)
        const runtime = yield* runOver(storage, options)
        yield* waitUntil("the last replacement is told", () => a.words().includes(replaced.at(-1)!))
        yield* waitForEnd(runtime, 5)
        yield* buried.open
        // What was told and not yet written is told again, with the same id and bytes.
        assert.deepStrictEqual([...new Set(a.words())], replaced)
        assert.strictEqual(bodies(a).size, replaced.length)
        for (const [id, { size }] of bodies(a)) assert.strictEqual(size, 1, id)
        assert.deepStrictEqual(a.standing(), ["1", "20", "30", "40", "50"])
        assert.isNull(yield* storage.invalidation("test"))
      }),
    )
  }
})
