import { Effect, Schema } from "effect"
import { SinkPlugin } from "../../../core/plugin/sink.ts"

const severities = { debug: "Debug", info: "Info", warn: "Warn", error: "Error" } as const

const LogConfig = Schema.Struct({
  level: Schema.Literals(["debug", "info", "warn", "error"]).pipe(
    Schema.withDecodingDefault(Effect.succeed("info" as const)),
  ),
})

/** Writes each event to the log as one line: its canonical JSON, annotated with the delivery's id. */
export default SinkPlugin.make({
  name: "log",
  config: LogConfig,
  make: ({ level }) => {
    const log = Effect.logWithLevel(severities[level])
    return Effect.succeed({
      timeoutMs: 1_000,
      deliver: (_event, { id, body, nonce }) =>
        log(body).pipe(Effect.annotateLogs(nonce === null ? { delivery: id } : { delivery: id, attempt: nonce })),
    })
  },
})
