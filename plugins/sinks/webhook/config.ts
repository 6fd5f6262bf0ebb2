import { Effect, Schema } from "effect"
import { SecretReference } from "../../../core/plugin/secrets.ts"
import { headerProblem } from "./headers.ts"

/** The URL if it is one that a request can be sent to. */
export const parseHttpUrl = (text: string): URL | null => {
  const url = URL.parse(text)
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") ? url : null
}

const HttpUrl = Schema.String.check(
  Schema.makeFilter((text) => parseHttpUrl(text) !== null || "this is no absolute http:// or https:// URL"),
)

const Headers = Schema.Record(Schema.String, Schema.String).check(
  Schema.makeFilter((headers) =>
    Object.entries(headers).flatMap(([name, value]) => {
      const issue = headerProblem(name, value)
      return issue === null ? [] : [{ path: [name], issue }]
    }),
  ),
)

const MAX_TIMEOUT_MS = 600_000

/**
 * `url` or `url_secret`, not both; `headers`, whose values may be secret references; `timeout_ms` for one attempt;
 * `body_template` in place of the canonical JSON; `signing_secrets`, references to Standard Webhooks secrets.
 */
export const WebhookConfig = Schema.Struct({
  url: Schema.optionalKey(HttpUrl),
  url_secret: Schema.optionalKey(SecretReference),
  headers: Headers.pipe(Schema.withDecodingDefault(Effect.succeed({}))),
  timeout_ms: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MAX_TIMEOUT_MS })).pipe(
    Schema.withDecodingDefault(Effect.succeed(10_000)),
  ),
  body_template: Schema.optionalKey(Schema.String),
  signing_secrets: Schema.Array(SecretReference).pipe(Schema.withDecodingDefault(Effect.succeed([]))),
}).check(
  Schema.makeFilter(({ url, url_secret }) => {
    if (url === undefined && url_secret === undefined) {
      return { path: ["url_secret"], issue: "missing; give url_secret (a reference) or url" }
    }
    return url !== undefined && url_secret !== undefined
      ? { path: ["url_secret"], issue: "url is given as well; keep one of the two" }
      : undefined
  }),
)
export type WebhookConfig = typeof WebhookConfig.Type
