import { Clock, Effect } from "effect"
import { Actions } from "../../core/actions/actions.ts"
import type { Health } from "../../core/engine/blockwatcher.ts"

/** What the program's actions have not done, as their stores tell. */
export interface ActionsHealth {
  /** Those that have deliveries which wait or need someone. */
  readonly actions: ReadonlyArray<{
    readonly action: string
    readonly waiting: number
    /** How long ago the oldest of these came; null without any. */
    readonly oldestSeconds: number | null
    readonly failed: number
    readonly parked: number
  }>
  /** Why an event store does not answer at present, or null. */
  readonly eventStore: string | null
}

/** How long a store may take to answer a health check. */
const WAIT = "1 second"

/** Never fails, and answers in time whatever the stores do. */
export const actionsHealth: Effect.Effect<ActionsHealth, never, Actions> = Effect.gen(function* () {
  const { overview } = yield* Actions
  const views = yield* overview(["waiting", "failed", "parked"])
  const now = yield* Clock.currentTimeMillis
  const actions = views.flatMap(({ name, counts }) => {
    const of = (state: string) => counts.filter((count) => count.state === state)
    const sum = (state: string) => of(state).reduce((all, { deliveries }) => all + deliveries, 0)
    if (counts.length === 0) return []
    const came = of("waiting").map(({ oldest }) => oldest)
    const oldestSeconds = came.length === 0 ? null : Math.max(0, now - Math.min(...came)) / 1000
    return [{ action: name, waiting: sum("waiting"), oldestSeconds, failed: sum("failed"), parked: sum("parked") }]
  })
  return { actions, eventStore: null }
}).pipe(
  Effect.catchTag("StoreFailed", ({ message }) => Effect.succeed({ actions: [], eventStore: message })),
  Effect.timeoutOrElse({
    duration: WAIT,
    orElse: () => Effect.succeed({ actions: [], eventStore: "no answer within 1 s" }),
  }),
)

/** Whether everything works: the database answers, and no network is in trouble. */
export const isReady = ({ networks, storage }: Health): boolean =>
  storage === null && networks.every(({ state, error }) => state !== "FAILED" && error === null)

/** The body of `/healthz` and `/readyz`. */
export const healthBody = (health: Health, actions: ActionsHealth) => ({
  status: isReady(health) ? "ok" : "degraded",
  ...health,
  ...actions,
})
