import { Result } from "effect"
import { eventRenderer } from "../model/event-json.ts"
import type { EventShape } from "../model/fields.ts"
import { matchIdDeriver } from "../model/match-id.ts"
import type { Gate } from "../model/policy.ts"
import { type Problem, under } from "../model/problem.ts"
import type { MonitorDefinition } from "../model/resource.ts"
import type { ActiveMonitor } from "../pipeline/interest-versions.ts"
import type { CompiledGate } from "../pipeline/matcher.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { SourcePlugin } from "../plugin/source.ts"
import { compileKey } from "../predicate/key.ts"
import { compilePredicate } from "../predicate/predicate.ts"
import { revisionOf } from "./canonical.ts"

/** The revision of what a monitor matches: a new one takes effect anew, other edits leave the running one alone. */
export const matchRevisionOf = ({ network, selector, predicate, gate }: MonitorDefinition): string =>
  revisionOf({ network, selector, predicate, gate })

/** What a plugin says of a selector; one that breaks over it refuses it. */
const describe = (plugin: SourcePlugin, selector: unknown): ReturnType<SourcePlugin["describe"]> => {
  try {
    return plugin.describe(selector)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { problems: [{ path: "", message: `the plugin ${plugin.name} broke over it: ${reason}` }] }
  }
}

/** Compiles what of a gate depends on the events; null if there is none. */
const compileGate = (
  { name, eventTime }: SourcePlugin,
  gate: Gate | null,
  shape: EventShape,
): Result.Result<CompiledGate | null, ReadonlyArray<Problem>> => {
  if (gate === null) return Result.succeed(null)
  const key = gate.by === null ? { keyOf: () => "" } : compileKey(gate.by, shape)
  const noTime = eventTime
    ? []
    : [{ path: "gate", message: `cannot be used here: a gate goes by event time, and the events of ${name} have none` }]
  if ("problems" in key) return Result.fail([...noTime, ...under("gate.by", key.problems)])
  return noTime.length > 0 ? Result.fail(noTime) : Result.succeed({ gate, keyOf: key.keyOf })
}

/** Compiles a monitor against the plugin of its network, or answers all its problems. */
export const compileMonitor = (
  plugin: SourcePlugin,
  definition: MonitorDefinition,
): Result.Result<ActiveMonitor, ReadonlyArray<Problem>> => {
  const selector = decodeConfig(plugin.selector, definition.selector)
  if (Result.isFailure(selector)) return Result.fail(under("selector", selector.failure))
  const description = describe(plugin, selector.success)
  if ("problems" in description) return Result.fail(under("selector", description.problems))
  const shape: EventShape = { ...description, address: plugin.address }
  const predicate = definition.predicate === null ? null : compilePredicate(definition.predicate, shape)
  const gate = compileGate(plugin, definition.gate, shape)
  if (predicate !== null && "problems" in predicate) {
    return Result.fail([...under("predicate", predicate.problems), ...(Result.isFailure(gate) ? gate.failure : [])])
  }
  if (Result.isFailure(gate)) return Result.fail(gate.failure)
  const { id, network } = definition
  return Result.succeed({
    selector: selector.success,
    compiled: {
      id,
      matchRevision: matchRevisionOf(definition),
      predicate,
      gate: gate.success,
      render: eventRenderer(shape),
      matchId: matchIdDeriver(shape, { network, monitor: id }),
    },
  })
}
