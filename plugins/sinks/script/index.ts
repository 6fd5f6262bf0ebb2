import { Config, Effect } from "effect"
import { type DeliveryError, Permanent, PluginRefused, Transient } from "../../../core/plugin/error.ts"
import { excerpt } from "../../../core/plugin/secrets-excerpt.ts"
import { fieldProblems, resolveField } from "../../../core/plugin/secrets-field.ts"
import { SinkPlugin } from "../../../core/plugin/sink.ts"
import { ScriptConfig } from "./config.ts"
import { ScriptsDirectory } from "./directory.ts"
import { locate } from "./locate.ts"
import { run, type RunEnd } from "./process.ts"

export { ScriptsDirectory }

/** `EX_DATAERR` of sysexits.h: the script will never accept this event. */
const REFUSED = 65

const EXCERPT_LENGTH = 200

/** Time for finding the script and for its last output, beside the time that it may run. */
const MARGIN_MS = 1_000

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

/** What the end of a run means: null for success, else the class of the failure. */
const outcomeOf = (path: string, timeoutMs: number, end: RunEnd, said: string): DeliveryError | null => {
  const tell = (what: string) => `script ${path}: ${what}${said === "" ? "" : `: ${said}`}`
  switch (end.kind) {
    case "exited": {
      if (end.code === 0) return null
      const reason = tell(`exit code ${end.code}`)
      return end.code === REFUSED ? new Permanent({ reason }) : new Transient({ reason })
    }
    case "signalled":
      return new Transient({ reason: tell(`ended by ${end.signal}`) })
    case "timed-out":
      return new Transient({ reason: tell(`killed, it had not ended within ${timeoutMs} ms`) })
    case "not-started":
      return new Transient({ reason: tell(`could not be started (${end.code}); does it begin with #! and a program?`) })
  }
}

const resolveVariables = Effect.fnUntraced(function* (variables: ScriptConfig["env"]) {
  const fields = yield* Effect.forEach(Object.entries(variables), ([name, value]) =>
    resolveField(`env.${name}`, value, (secret) =>
      secret.includes("\0") ? "a variable may not hold the character NUL" : null,
    ).pipe(Effect.map((field) => ({ name, field }))),
  )
  const problems = fieldProblems(fields.map(({ field }) => field))
  const values = fields.flatMap(({ name, field }) =>
    "value" in field ? [{ name, value: field.value, isSecret: field.isSecret }] : [],
  )
  return {
    problems,
    env: Object.fromEntries(values.map(({ name, value }) => [name, value])),
    hidden: values.flatMap(({ value, isSecret }) => (isSecret ? [value] : [])),
  }
})

/**
 * Runs an executable file for each event, with the canonical JSON as one line on its standard input. Exit code 0 means
 * delivered, 65 that the event is refused for good; any other end of it, and no end in time, is tried again.
 *
 * The script sees PATH, the config's `env`, BLOCKWATCHER_DELIVERY_ID (the same on every attempt) and, on a replay by
 * hand, BLOCKWATCHER_ATTEMPT. What it writes to stdout is dropped, the end of its stderr stands in the reason of a failure,
 * and processes that it leaves behind in its group are killed.
 */
export default SinkPlugin.make({
  name: "script",
  config: ScriptConfig,
  sensitive: ["env.*"],
  make: Effect.fn("script.make")(function* (config) {
    const scripts = yield* ScriptsDirectory
    const { problems, env, hidden } = yield* resolveVariables(config.env)
    const place =
      scripts === null
        ? [
            {
              path: "",
              message: "script sinks are off; set BLOCKWATCHER_SCRIPTS_DIR to the directory that holds the scripts",
            },
          ]
        : yield* locate(scripts, config.path).pipe(
            Effect.match({ onFailure: (message) => [{ path: "path", message }], onSuccess: () => [] }),
          )
    if (scripts === null || place.length > 0 || problems.length > 0) {
      return yield* PluginRefused.of([...place, ...problems])
    }
    const PATH = yield* Config.String("PATH").pipe(
      Config.withDefault(DEFAULT_PATH),
      Effect.mapError((error) => new PluginRefused({ reason: `PATH cannot be read: ${error.message}` })),
    )

    return {
      timeoutMs: config.timeout_ms + MARGIN_MS,
      deliver: Effect.fnUntraced(function* (_event, delivery) {
        // A link may have been changed since the sink was made.
        const { file, directory } = yield* locate(scripts, config.path).pipe(
          Effect.mapError((problem) => new Transient({ reason: `script: ${problem}` })),
        )
        const end = yield* run({
          file,
          args: config.args,
          directory,
          env: {
            PATH,
            ...env,
            BLOCKWATCHER_DELIVERY_ID: delivery.id,
            ...(delivery.nonce === null ? {} : { BLOCKWATCHER_ATTEMPT: delivery.nonce }),
          },
          input: `${delivery.body}\n`,
          timeoutMs: config.timeout_ms,
        })
        const said =
          end.kind === "not-started" ? "" : excerpt(end.stderr, { secrets: hidden, limit: EXCERPT_LENGTH, keep: "end" })
        const failure = outcomeOf(config.path, config.timeout_ms, end, said)
        if (failure !== null) return yield* failure
      }),
    }
  }),
})
