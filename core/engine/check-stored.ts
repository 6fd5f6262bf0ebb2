import { Effect, Result } from "effect"
import { type Problem, under } from "../model/problem.ts"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { StoredResources } from "../storage/storage.ts"
import { unsupportedOfMonitor, unsupportedOfSink, wrongRetry } from "./check-definitions.ts"
import { Refused } from "./error.ts"

/**
 * Checks core's own fields of what is stored (a restored backup, a row edited by hand): what is wrong stops the start,
 * all problems at once. What only a plugin can judge makes its network or sink FAILED instead.
 */
export const checkStored = (stored: StoredResources): Effect.Effect<void, Refused> => {
  const problems: Array<Problem> = [
    ...stored.networks.flatMap(({ definition }) =>
      problemsOf(`network "${definition.id}"`, decodeConfig(NetworkDefinition, definition), () => []),
    ),
    ...stored.monitors.flatMap(({ definition }) =>
      problemsOf(`monitor "${definition.id}"`, decodeConfig(MonitorDefinition, definition), unsupportedOfMonitor),
    ),
    ...stored.sinks.flatMap(({ definition }) =>
      problemsOf(`sink "${definition.id}"`, decodeConfig(SinkDefinition, definition), (sink) => [
        ...wrongRetry(sink),
        ...unsupportedOfSink(sink),
      ]),
    ),
  ]
  return problems.length === 0
    ? Effect.void
    : Effect.fail(new Refused({ code: "INVALID", resource: "what the database holds", problems }))
}

const problemsOf = <A>(
  resource: string,
  decoded: Result.Result<A, ReadonlyArray<Problem>>,
  check: (definition: A) => ReadonlyArray<Problem>,
): ReadonlyArray<Problem> => under(resource, Result.isFailure(decoded) ? decoded.failure : check(decoded.success))
