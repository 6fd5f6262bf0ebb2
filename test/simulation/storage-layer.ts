import { Effect } from "effect"
import type { Storage } from "../../core/index.ts"
import { storageFault } from "./faults.ts"
import type { Life } from "./life.ts"
import { Random } from "../../server/devnet/simulated/random.ts"
import type { World } from "./world.ts"

type Service = Storage["Service"]

/** Operations that write, and are points where things happen. */
const WRITES = [
  "change",
  "claim",
  "renew",
  "release",
  "begin",
  "mint",
  "mintLate",
  "settle",
  "checkpoint",
  "pause",
  "invalidate",
  "retract",
  "rewind",
  "prune",
  "replayed",
  "discard",
  "offerRetractions",
] as const

/** Operations that the runtime repeats by itself when the database refuses them for a while. */
const REPEATED = new Set<string>([
  "claim",
  "renew",
  "begin",
  "mint",
  "settle",
  "checkpoint",
  "invalidate",
  "retract",
  "rewind",
])

/** What is there without asking the database. */
const NOT_ASKED = new Set(["database", "feedGrowth", "newEvents"])

type Call = (...args: ReadonlyArray<any>) => Effect.Effect<any, any>

/** What a life's runtime has for a database: the real one, until it dies; with faults, and points where things happen. */
export const simulatedStorage = (real: Service, life: Life, world: World): Service => {
  const random = new Random(world.seed, `storage of life ${life.number}`)
  const alive = Effect.suspend(() => life.proceeds)
  const pass = (point: string) => Effect.suspend(() => (world.points.pass(point, life), life.proceeds))

  const read = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.andThen(
      alive,
      Effect.tap(effect, () => alive),
    )
  const write = (operation: string, call: Call): Call => {
    const fault = Effect.suspend(() => storageFault(world.moods, random, operation))
    return (...args) =>
      pass(`${operation}:before`).pipe(
        Effect.andThen(REPEATED.has(operation) ? fault : Effect.void),
        Effect.andThen(alive),
        Effect.andThen(Effect.suspend(() => call(...args))),
        Effect.tap(() => pass(`${operation}:after`)),
      )
  }

  const wrapped = Object.fromEntries(
    Object.entries(real).map(([operation, given]) => {
      if (NOT_ASKED.has(operation)) return [operation, given]
      if (typeof given !== "function") return [operation, read(given as Effect.Effect<unknown>)]
      const call = given as Call
      if ((WRITES as ReadonlyArray<string>).includes(operation)) return [operation, write(operation, call)]
      return [operation, (...args: ReadonlyArray<any>) => read(call(...args))]
    }),
  ) as unknown as Service

  const beginOrder = () => {
    for (const receiver of world.receivers.values()) receiver.beginOrder()
  }

  return {
    ...wrapped,
    claim: (network, lease) =>
      Effect.suspend(() => {
        world.holders.set(lease.holder, life)
        // Who is to take over need not wait for a lease; what the other does from now on it does without one.
        if (world.preferred === life) world.owner = life
        const isGone = (holder: string) => world.preferred === life || world.holders.get(holder)?.isOver !== false
        return Effect.tap(wrapped.claim(network, { ...lease, isGone }), () =>
          Effect.sync(() => {
            world.log(`life ${life.number} owns the network`)
            world.owner = life
            beginOrder()
          }),
        )
      }),
    mint: (owner, input) =>
      Effect.tap(wrapped.mint(owner, input), () =>
        Effect.sync(() => {
          world.minted = input.upTo.primary
        }),
      ),
    rewind: (owner, depth) =>
      world.rewinding.pipe(
        Effect.andThen(wrapped.rewind(owner, depth)),
        Effect.tap((rewound) =>
          Effect.andThen(
            world.rewinding,
            Effect.sync(() => {
              if (rewound.to !== null) {
                world.minted = rewound.to.primary
                world.takenBack.rewindEnds(rewound.to.primary)
              }
              // What a paused sink was to take back died unsent: its receiver does not see that the network went back.
              beginOrder()
            }),
          ),
        ),
      ),
  }
}
