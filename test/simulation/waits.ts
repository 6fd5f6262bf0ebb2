import { Effect } from "effect"
import { ledgerDebts } from "./ledger.ts"
import type { Life } from "./life.ts"
import { NETWORK } from "./setup.ts"
import type { World } from "./world.ts"

/** Between two looks, in ms of the machine: they need time too, so they become rarer. */
const LOOK_MS = { first: 1, last: 5 }

const pause = (ms: number) =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), ms)
    return Effect.sync(() => clearTimeout(timer))
  })

/** Waits for a condition, at most so many ms of the machine; answers whether it came true. */
export const waitFor = (condition: Effect.Effect<boolean>, mostMs: number): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const until = performance.now() + mostMs
    const look = (ms: number): Effect.Effect<boolean> =>
      Effect.flatMap(condition, (holds) =>
        holds || performance.now() > until
          ? Effect.succeed(holds)
          : Effect.andThen(pause(ms), look(Math.min(ms + 1, LOOK_MS.last))),
      )
    return look(LOOK_MS.first)
  })

/** Waits for a condition as long as a measure of what is left falls, at most so many ms of the machine each time. */
export const waitAsItFalls = (
  condition: Effect.Effect<boolean>,
  left: () => number,
  mostMs: number,
): Effect.Effect<boolean> => {
  const goOn = (least: number): Effect.Effect<boolean> =>
    Effect.flatMap(waitFor(condition, mostMs), (holds) =>
      holds || left() >= least ? Effect.succeed(holds) : goOn(left()),
    )
  return Effect.suspend(() => goOn(left()))
}

export const waitWhile = (condition: () => boolean, mostMs: number): Effect.Effect<boolean> =>
  waitFor(
    Effect.sync(() => !condition()),
    mostMs,
  )

/** Whether a runtime is finished with everything that its chain holds. */
export const isQuiet = (world: World, life: Life): Effect.Effect<boolean> =>
  Effect.map(unrest(world, life), (reason) => reason === null)

/** Whether a runtime has seen its chain: it takes something back, or has read on. */
export const hasLooked = (life: Life): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { storage, isOver } = life
    if (isOver) return true
    if (storage === null) return false
    if ((yield* storage.invalidation(NETWORK)) !== null) return true
    const before = yield* storage.pipeline(NETWORK)
    return before !== null && before.minted !== null && before.minted.primary > (before.checkpoint?.primary ?? 0) + 20
  }).pipe(Effect.orElseSucceed(() => false))

/** Why a runtime is not finished yet. */
export const unrest = (world: World, life: Life): Effect.Effect<string | null> =>
  Effect.gen(function* () {
    const { storage, parts } = life
    if (life.isOver || storage === null || parts === null) return "it does not run"
    const { head } = world.chain
    const pipeline = yield* storage.pipeline(NETWORK)
    if (pipeline?.minted?.primary !== head.number || pipeline.checkpoint?.primary !== head.number) {
      return `minted ${pipeline?.minted?.primary}, checkpoint ${pipeline?.checkpoint?.primary} of ${head.number}`
    }
    const [newest] = yield* storage.anchors(NETWORK, head.number, 1)
    if (newest?.hash !== head.hash) return `the newest block is ${newest?.hash}, not ${head.hash}`
    if ((yield* storage.invalidation(NETWORK)) !== null) return "it takes something back"
    const { owed } = yield* storage.debts({ network: NETWORK })
    if (owed > 0) return `it owes ${owed} deliveries`
    if (world.hasLedger) {
      const { open } = yield* ledgerDebts(parts.actions)
      if (open > 0) return `${open} deliveries to actions are open`
    }
    const network = (yield* parts.resources.networks)[0]!
    const { state, error, inFlightEvents, checkpoint } = network
    const isCurrent = checkpoint?.cursor.primary === head.number
    return state === "RUNNING" && inFlightEvents === 0 && isCurrent
      ? null
      : `${state}: ${error}, ${inFlightEvents} in flight`
  }).pipe(Effect.catchCause((cause) => Effect.succeed(String(cause))))
