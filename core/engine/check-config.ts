import { Effect, Result, type Scope } from "effect"
import { type Problem, under } from "../model/problem.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { Egress } from "../plugin/egress.ts"
import type { PluginRefused } from "../plugin/error.ts"
import { makeInTime } from "../plugin/make-in-time.ts"
import { unmaskConfig } from "../plugin/mask.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { SinkPlugin } from "../plugin/sink.ts"
import type { SourcePlugin } from "../plugin/source.ts"

type Config = Readonly<Record<string, unknown>>

/**
 * Puts masked values of a config back, decodes it, and builds the plugin once to see that it can be. Where something is
 * wrong, the fields that are right are decoded and built all the same, as far as they make a config: all problems are told
 * at once.
 */
export const checkConfig = Effect.fnUntraced(function* (
  plugin: SourcePlugin | SinkPlugin,
  written: Config,
  stored: unknown,
): Effect.fn.Return<Result.Result<Config, ReadonlyArray<Problem>>, never, Egress | Secrets> {
  const unmasked = unmaskConfig(written, stored, plugin.sensitive)
  const problems: Array<Problem> = Result.isFailure(unmasked) ? [...unmasked.failure] : []
  const config = Result.isSuccess(unmasked) ? unmasked.success : written
  const decode = (input: Config) => decodeConfig<unknown>(plugin.config, input, plugin.sensitive)
  let decoded = decode(config)
  if (Result.isFailure(decoded)) {
    problems.push(...decoded.failure.filter(({ path }) => !problems.some((known) => known.path === path)))
  }
  if (problems.length > 0) decoded = decode(without(config, problems))
  if (Result.isSuccess(decoded)) {
    const built: Effect.Effect<unknown, PluginRefused, Scope.Scope | Egress | Secrets> = plugin.make(decoded.success)
    const made = yield* Effect.result(Effect.scoped(makeInTime(built)))
    if (Result.isFailure(made))
      problems.push(...(made.failure.problems ?? [{ path: "", message: made.failure.reason }]))
  }
  return problems.length > 0 ? Result.fail(under("config", problems)) : Result.succeed(config)
})

/** The fields of a config that have no problem. */
const without = (config: Config, problems: ReadonlyArray<Problem>): Config => {
  const wrong = new Set(problems.map(({ path }) => path.split(".", 1)[0]))
  return Object.fromEntries(Object.entries(config).filter(([field]) => !wrong.has(field)))
}
