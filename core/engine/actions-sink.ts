import { Effect, Schema } from "effect"
import type { Action } from "../actions/action.ts"
import { defaultRetry } from "../model/policy.ts"
import type { Problem } from "../model/problem.ts"
import type { SinkDefinition } from "../model/resource.ts"
import type { Plugins } from "../plugin/registry.ts"
import { SinkPlugin } from "../plugin/sink.ts"
import { ACTIONS } from "../storage/events.ts"
import type { Catalog } from "./catalog.ts"
import { Refused } from "./error.ts"
import type { SinkRegistry } from "./sink-registry.ts"

/** The names of the actions that each monitor's matches go to; undefined without any action. */
export const subscriptions = (
  actions: ReadonlyArray<Pick<Action, "name" | "on">>,
): ReadonlyMap<string, ReadonlyArray<string>> | undefined => {
  if (actions.length === 0) return undefined
  const names = new Map<string, Array<string>>()
  for (const { name, on } of actions) {
    for (const subscription of on) {
      if (subscription.kind !== "match") continue
      names.set(subscription.monitor, [...(names.get(subscription.monitor) ?? []), name])
    }
  }
  return names
}

/** The plugin of the built-in sink. Its rows are delivered as they are stored, with their events, and no worker sees them. */
export const actionsPlugin: SinkPlugin = SinkPlugin.make({
  name: ACTIONS,
  config: Schema.Struct({}),
  make: () =>
    Effect.succeed({
      deliver: () => Effect.die(new Error("a row of the sink actions came to a worker")),
      timeoutMs: 1,
    }),
})

/** The built-in sink, as it is stored. */
export const actionsDefinition = { id: ACTIONS, module: ACTIONS, config: {} }

/** Whether this program has actions: the sink is built in as long as it has. */
export const hasActions = (plugins: Plugins["Service"]): boolean => plugins.sink(ACTIONS) === actionsPlugin

const isDefault = ({ maxAttempts, initialBackoffMs, maxBackoffMs }: SinkDefinition["retry"]): boolean =>
  maxAttempts === defaultRetry.maxAttempts &&
  initialBackoffMs === defaultRetry.initialBackoffMs &&
  maxBackoffMs === defaultRetry.maxBackoffMs

const ownPolicies = `is not for the sink "${ACTIONS}": what it gets is stored with the match and waits for nobody; leave it out`

/** What is wrong with a sink that is, or would be, the one of a program's actions. */
export const actionsProblems = (
  plugins: Plugins["Service"],
  { id, module, retry, throttle, aggregate, concurrency, buffer }: Partial<SinkDefinition>,
): ReadonlyArray<Problem> => {
  if (!hasActions(plugins)) return []
  if (id === ACTIONS && module !== undefined && module !== ACTIONS) {
    const message = `the sink "${ACTIONS}" is that of the program's actions; give this one another id`
    return [{ path: "id", message }]
  }
  if (module !== ACTIONS) return []
  const problems: Array<Problem> = []
  if (id !== undefined && id !== ACTIONS) {
    const message = `the module "${ACTIONS}" has one sink, which is there already; name "${ACTIONS}" in the monitor's sinks`
    problems.push({ path: "module", message })
  }
  const refuse = (path: string, message = ownPolicies) => problems.push({ path, message })
  if (retry !== undefined && !isDefault(retry)) {
    refuse("retry", `${ownPolicies}, and give each action a retry policy of its own where it is made`)
  }
  if (throttle != null) refuse("throttle")
  if (aggregate != null) refuse("aggregate")
  if (concurrency !== undefined && concurrency !== 1) refuse("concurrency")
  if (buffer === "DURABLE") refuse("buffer")
  return problems
}

/** Another sink that is stored under the id would lose its rows to the actions. */
export const checkActionsId = (sinks: SinkRegistry): Effect.Effect<void, Refused> => {
  const module = sinks.get(ACTIONS)?.definition.module
  if (module === undefined || module === ACTIONS) return Effect.void
  const message =
    `a sink of the module "${module}" is stored as "${ACTIONS}", which is the id of the built-in sink; start without ` +
    `actions, put that sink under another id, name it so in its monitors, and delete "${ACTIONS}"`
  return Effect.fail(new Refused({ resource: "the set of actions", problems: [{ path: "", message }] }))
}

/** Why the built-in sink is not changed so, and what to do. */
export const unpausable =
  `sink "${ACTIONS}" cannot be paused: what it gets is stored with the match, and its actions run on from there; ` +
  `let the networks rest with pauseNetwork, or take it out of the sinks of their monitors`

export const undeletable = `sink "${ACTIONS}" is that of the program's actions and is there for as long as the program has any`

/** Warns of actions that hear nothing: of a monitor that is not there, or that does not name the sink. */
export const warnOfDeafActions = (
  catalog: Catalog,
  subscribed: ReadonlyMap<string, ReadonlyArray<string>>,
): Effect.Effect<void> =>
  Effect.forEach(
    subscribed,
    ([monitor, names]) => {
      const entry = catalog.monitors.get(monitor)
      if (entry?.stored.definition.sinks.includes(ACTIONS) === true) return Effect.void
      const why =
        entry === undefined
          ? "there is no such monitor yet; put it, with"
          : "that monitor does not send to them; put it with"
      return Effect.logWarning(
        `actions that are subscribed to matches of monitor ${monitor} (${names.join(", ")}) get none: ${why} "${ACTIONS}" among its sinks`,
      )
    },
    { discard: true },
  )
