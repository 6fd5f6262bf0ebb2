import { Result } from "effect"
import { eventRenderer } from "../model/event-json.ts"
import type { EventShape } from "../model/fields.ts"
import { matchIdDeriver } from "../model/match-id.ts"
import { type Problem, under } from "../model/problem.ts"
import type { MonitorDefinition } from "../model/resource.ts"
import type { ActiveMonitor } from "../pipeline/interest-versions.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { SourcePlugin } from "../plugin/source.ts"
import { type CompiledKey, compileKey, keySyntax } from "../predicate/key.ts"
import { type CompiledPredicate, compilePredicate, predicateSyntax } from "../predicate/predicate.ts"
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

/** What a source and the expressions of a monitor are judged by; null where it is not there, or cannot be read. */
export interface MonitorParts {
  readonly selector: MonitorDefinition["selector"] | null
  readonly predicate: string | null
  /** The key of its gate. */
  readonly by: string | null
  readonly isGated: boolean
}

/** What a monitor is made of once everything compiled. */
interface CompiledParts {
  readonly selector: unknown
  readonly shape: EventShape
  readonly predicate: CompiledPredicate | null
  readonly key: CompiledKey | null
}

type Compiled<A> = Result.Result<A, ReadonlyArray<Problem>>

/** What a selector yields. */
const readSelector = (
  plugin: SourcePlugin,
  written: MonitorDefinition["selector"],
): Compiled<Pick<CompiledParts, "selector" | "shape">> => {
  const selector = decodeConfig<unknown>(plugin.selector, written)
  if (Result.isFailure(selector)) return Result.fail(under("selector", selector.failure))
  const description = describe(plugin, selector.success)
  if ("problems" in description) return Result.fail(under("selector", description.problems))
  return Result.succeed({ selector: selector.success, shape: { ...description, address: plugin.address } })
}

const problemsAt = (
  path: string,
  compiled: CompiledPredicate | CompiledKey | { readonly problems: ReadonlyArray<Problem> } | null,
): ReadonlyArray<Problem> => (compiled !== null && "problems" in compiled ? under(path, compiled.problems) : [])

/** Compiles all that can be. Of expressions whose events are not known the syntax is judged. */
const compileParts = (
  plugin: SourcePlugin | null,
  { selector, predicate, by, isGated }: MonitorParts,
): Compiled<CompiledParts> => {
  const noTime: ReadonlyArray<Problem> =
    plugin === null || !isGated || plugin.eventTime
      ? []
      : [
          {
            path: "gate",
            message: `cannot be used here: a gate goes by event time, and the events of ${plugin.name} have none`,
          },
        ]
  const read = plugin === null || selector === null ? Result.fail([]) : readSelector(plugin, selector)
  if (Result.isFailure(read)) {
    return Result.fail([
      ...read.failure,
      ...under("predicate", predicate === null ? [] : predicateSyntax(predicate)),
      ...noTime,
      ...under("gate.by", by === null ? [] : keySyntax(by)),
    ])
  }
  const { shape } = read.success
  const test = predicate === null ? null : compilePredicate(predicate, shape)
  const key = by === null ? null : compileKey(by, shape)
  if ((test !== null && "problems" in test) || (key !== null && "problems" in key) || noTime.length > 0) {
    return Result.fail([...problemsAt("predicate", test), ...noTime, ...problemsAt("gate.by", key)])
  }
  return Result.succeed({ ...read.success, predicate: test, key })
}

/** The problems of a monitor that is not whole, or whose network cannot judge it. */
export const monitorProblems = (plugin: SourcePlugin | null, parts: MonitorParts): ReadonlyArray<Problem> =>
  Result.match(compileParts(plugin, parts), { onFailure: (problems) => problems, onSuccess: () => [] })

/** Compiles a monitor against the plugin of its network, or answers all its problems. */
export const compileMonitor = (plugin: SourcePlugin, definition: MonitorDefinition): Compiled<ActiveMonitor> => {
  const { id, network, gate, selector, predicate } = definition
  const parts = compileParts(plugin, { selector, predicate, by: gate?.by ?? null, isGated: gate !== null })
  return Result.map(parts, ({ selector: decoded, shape, predicate: test, key }) => ({
    selector: decoded,
    compiled: {
      id,
      matchRevision: matchRevisionOf(definition),
      predicate: test,
      gate: gate === null ? null : { gate, keyOf: key === null ? () => "" : key.keyOf },
      render: eventRenderer(shape),
      matchId: matchIdDeriver(shape, { network, monitor: id }),
    },
  }))
}
