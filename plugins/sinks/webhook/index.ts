import { Clock, Effect, Result } from "effect"
import type { Problem } from "../../../core/model/problem.ts"
import { Egress } from "../../../core/plugin/egress.ts"
import { PluginRefused } from "../../../core/plugin/error.ts"
import { excerpt } from "../../../core/plugin/secrets-excerpt.ts"
import { type Delivery, SinkPlugin } from "../../../core/plugin/sink.ts"
import { presentTraceparent } from "../../../core/plugin/tracing.ts"
import { WebhookConfig } from "./config.ts"
import { outcomeOf, outcomeOfFailure } from "./outcome.ts"
import { resolveConfig } from "./resolve.ts"
import { signatureHeader } from "./signature.ts"
import { compileTemplate, noDigestsOf } from "./template.ts"

const MAX_RESPONSE_BYTES = 65_536
const EXCERPT_LENGTH = 200

/** Time for rendering, signing and classing, beside the time that the request may take. */
const MARGIN_MS = 1_000

const problemsOf = (result: Result.Result<unknown, PluginRefused>): ReadonlyArray<Problem> =>
  Result.isFailure(result) ? (result.failure.problems ?? []) : []

/**
 * Posts each event to a URL. A receiver deduplicates on `Idempotency-Key` (or `webhook-id`, the same value), verifies
 * `webhook-signature` if signing secrets are set, and answers 2xx once it has the event.
 */
export default SinkPlugin.make({
  name: "webhook",
  config: WebhookConfig,
  sensitive: ["url", "headers.*"],
  make: Effect.fn("webhook.make")(function* (config) {
    const egress = yield* Egress
    const resolved = yield* Effect.result(resolveConfig(config))
    const template = config.body_template === undefined ? Effect.succeed(null) : compileTemplate(config.body_template)
    const compiled = yield* Effect.result(template)
    if (Result.isFailure(resolved) || Result.isFailure(compiled)) {
      return yield* PluginRefused.of([...problemsOf(resolved), ...problemsOf(compiled)])
    }
    const { url, headers, keys, hidden } = resolved.success
    const render = compiled.success
    const noDigests = config.body_template === undefined ? undefined : noDigestsOf(config.body_template)

    const requestHeaders = (
      delivery: Delivery,
      body: Uint8Array,
      now: number,
      traceparent: string | null,
    ): Readonly<Record<string, string>> => {
      const timestamp = Math.floor(now / 1_000)
      return {
        "content-type": "application/json",
        "user-agent": "blockwatcher",
        ...headers,
        ...(traceparent === null ? {} : { traceparent }),
        "idempotency-key": delivery.id,
        "webhook-id": delivery.id,
        ...(delivery.nonce === null ? {} : { "blockwatcher-attempt": delivery.nonce }),
        ...(keys.length === 0
          ? {}
          : {
              "webhook-timestamp": String(timestamp),
              "webhook-signature": signatureHeader(keys, { id: delivery.id, timestamp, body }),
            }),
      }
    }

    return {
      timeoutMs: config.timeout_ms + MARGIN_MS,
      ...(noDigests === undefined ? {} : { noDigests }),
      deliver: Effect.fnUntraced(function* (_event, delivery) {
        const text = render === null ? delivery.body : yield* render(JSON.parse(delivery.body))
        const body = Buffer.from(text)
        yield* Effect.annotateCurrentSpan({ "http.request.method": "POST", "server.address": url.hostname })
        const response = yield* egress
          .request({
            method: "POST",
            url,
            headers: requestHeaders(delivery, body, yield* Clock.currentTimeMillis, yield* presentTraceparent),
            body,
            timeoutMs: config.timeout_ms,
            maxBytes: MAX_RESPONSE_BYTES,
            overflow: "truncate",
          })
          .pipe(Effect.mapError(outcomeOfFailure))
        yield* Effect.annotateCurrentSpan("http.response.status_code", response.status)
        const said = excerpt(Buffer.from(response.body).toString(), {
          secrets: hidden,
          limit: EXCERPT_LENGTH,
          keep: "start",
        })
        const reason = `HTTP ${response.status} from ${url.origin}${said === "" ? "" : `: ${said}`}`
        const failure = outcomeOf(response, reason, yield* Clock.currentTimeMillis)
        if (failure !== null) return yield* failure
      }),
    }
  }),
})
