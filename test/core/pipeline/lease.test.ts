import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { afterEach, vi } from "vitest"
import { NotOwner, Storage, StorageError } from "../../../core/index.ts"
import { HeldLease, instant, leaseMs } from "../../../core/pipeline/lease.ts"
import { PipelineStatus } from "../../../core/pipeline/status.ts"
import { waitUntil } from "../../support/scripted-source.ts"

const owner = { network: "test", epoch: 1 }

afterEach(() => void vi.restoreAllMocks())

const clocks = { monotonic: performance.now.bind(performance), wall: Date.now }

/** Lets so much time have passed since the test began, on both clocks or on one alone. */
const passed = (ms: number, which: "both" | "monotonic" | "wall" = "both") => {
  vi.restoreAllMocks()
  if (which !== "wall") vi.spyOn(performance, "now").mockImplementation(() => clocks.monotonic() + ms)
  if (which !== "monotonic") vi.spyOn(Date, "now").mockImplementation(() => clocks.wall() + ms)
}

/** A storage of which `renew` alone is there. */
const renewing = (renew: Storage["Service"]["renew"]) => ({ renew }) as Storage["Service"]

const isWaiting = <A>(fiber: Fiber.Fiber<A>) => fiber.pollUnsafe() === undefined

describe("a lease", () => {
  it("lasts 15 seconds, or twice the longest attempt", () => {
    assert.strictEqual(leaseMs(0), 15_000)
    assert.strictEqual(leaseMs(7_500), 15_000)
    assert.strictEqual(leaseMs(30_000), 60_000)
  })

  it("covers an attempt that ends within it, whichever clock went on", () => {
    for (const which of ["both", "monotonic", "wall"] as const) {
      const lease = new HeldLease(1_000, instant())
      assert.isTrue(lease.covers(14_000))
      assert.isFalse(lease.covers(15_000))
      passed(10_000, which)
      assert.isTrue(lease.covers(4_000), which)
      assert.isFalse(lease.covers(5_000), which)
      passed(20_000, which)
      assert.isFalse(lease.covers(0), which)
      vi.restoreAllMocks()
    }
  })

  it("counts from before its claim was sent", () => {
    const since = instant()
    passed(14_500)
    assert.isFalse(new HeldLease(1_000, since).covers(1_000))
  })

  it.live("that ran out is renewed at once for whoever waits for it, and covers nothing before", () =>
    Effect.gen(function* () {
      const lease = new HeldLease(1_000, instant())
      const renewals: Array<number> = []
      let answer: () => void = () => {}
      const storage = renewing((_, ms) =>
        Effect.callback<void>((resume) => {
          renewals.push(ms)
          answer = () => resume(Effect.void)
        }),
      )
      yield* Effect.forkScoped(lease.keep(storage, owner, new PipelineStatus()))
      passed(20_000)
      const waiting = yield* Effect.forkScoped(lease.untilCovers(1_000), { startImmediately: true })
      yield* waitUntil("it is renewed", () => renewals.length === 1)
      assert.isTrue(isWaiting(waiting))
      assert.isFalse(lease.covers(0))
      // The answer took longer than the lease: it is not known to hold, and is asked for again.
      passed(40_000)
      answer()
      yield* waitUntil("it is renewed again", () => renewals.length === 2)
      assert.isTrue(isWaiting(waiting))
      answer()
      yield* Fiber.join(waiting)
      assert.isTrue(lease.covers(1_000))
      assert.deepStrictEqual(renewals, [15_000, 15_000])
    }),
  )

  it.live("grows for a sink that takes longer than those it was taken for", () =>
    Effect.gen(function* () {
      const lease = new HeldLease(1_000, instant())
      const renewals: Array<number> = []
      const storage = renewing((_, ms) => Effect.sync(() => void renewals.push(ms)))
      yield* Effect.forkScoped(lease.keep(storage, owner, new PipelineStatus()))
      assert.isFalse(lease.covers(30_000))
      yield* lease.untilCovers(30_000)
      assert.deepStrictEqual(renewals, [60_000])
      assert.isTrue(lease.covers(59_000))
    }),
  )

  it.live("is asked for again while the database does not answer, and that is shown", () =>
    Effect.gen(function* () {
      const lease = new HeldLease(1_000, instant())
      const status = new PipelineStatus()
      let broken = true
      const storage = renewing(() =>
        broken ? Effect.fail(new StorageError({ operation: "renew", reason: "away", retryable: true })) : Effect.void,
      )
      yield* Effect.forkScoped(lease.keep(storage, owner, status))
      passed(20_000)
      const waiting = yield* Effect.forkScoped(lease.untilCovers(1_000), { startImmediately: true })
      yield* waitUntil("it is shown", () => status.storage === "storage: renew: away")
      assert.isTrue(isWaiting(waiting))
      broken = false
      yield* Fiber.join(waiting)
      assert.isNull(status.storage)
    }),
  )

  it.live("that another took over ends its keeping, and lets nobody through", () =>
    Effect.gen(function* () {
      const lease = new HeldLease(1_000, instant())
      const storage = renewing(() => Effect.fail(new NotOwner({ network: "test" })))
      const keeping = yield* Effect.forkScoped(lease.keep(storage, owner, new PipelineStatus()))
      passed(20_000)
      const waiting = yield* Effect.forkScoped(lease.untilCovers(1_000), { startImmediately: true })
      const exit = yield* Fiber.await(keeping)
      assert.deepStrictEqual(exit, Exit.fail(new NotOwner({ network: "test" })))
      assert.isTrue(isWaiting(waiting))
      assert.isFalse(lease.covers(0))
    }),
  )
})
