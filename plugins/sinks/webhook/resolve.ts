import { Effect } from "effect"
import { PluginRefused } from "../../../core/plugin/error.ts"
import { fieldProblems, resolveField, type ResolvedField } from "../../../core/plugin/secrets-field.ts"
import { parseHttpUrl, type WebhookConfig } from "./config.ts"
import { isHeaderValue } from "./headers.ts"
import { signingKey } from "./signature.ts"

/** Parts of a URL and plain header values shorter than this are words (`v1`, `hooks`), not secrets. */
const MIN_SECRET_LENGTH = 6

const valueOf = (field: ResolvedField): string => ("value" in field ? field.value : "")
const isLong = (text: string): boolean => text.length >= MIN_SECRET_LENGTH

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** What of a URL a receiver could repeat in its answer and nobody else may read. */
const urlSecrets = (url: URL): ReadonlyArray<string> => {
  const parts = [...url.pathname.split("/"), ...url.search.split(/[?&=]/), url.username, url.password]
  return [url.pathname + url.search, url.pathname, url.search, ...parts]
    .flatMap((part) => [part, decoded(part)])
    .filter(isLong)
}

/** A webhook's config with its references resolved. `hidden` must not stand in anything that is shown. */
export interface ResolvedConfig {
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly keys: ReadonlyArray<Uint8Array>
  readonly hidden: ReadonlyArray<string>
}

/** Resolves all references of a config; all problems are refused together. */
export const resolveConfig = Effect.fnUntraced(function* (config: WebhookConfig) {
  const url = yield* resolveField("url_secret", config.url_secret ?? config.url ?? "", (value) =>
    parseHttpUrl(value) === null ? "it holds no absolute http:// or https:// URL" : null,
  )
  const headers = yield* Effect.forEach(Object.entries(config.headers), ([name, value]) =>
    resolveField(`headers.${name}`, value, (secret) =>
      isHeaderValue(secret) ? null : "it holds characters that a header may not hold, such as a line break",
    ).pipe(Effect.map((field) => ({ name: name.toLowerCase(), field }))),
  )
  const signing = yield* Effect.forEach(config.signing_secrets, (reference, index) =>
    resolveField(`signing_secrets.${index}`, reference, (value) =>
      signingKey(value) === null ? "it is no Standard Webhooks secret; write whsec_ and base64" : null,
    ),
  )
  const problems = fieldProblems([url, ...headers.map(({ field }) => field), ...signing])
  if (problems.length > 0) return yield* PluginRefused.of(problems)

  const target = new URL(valueOf(url))
  return {
    url: target,
    headers: Object.fromEntries(headers.map(({ name, field }) => [name, valueOf(field)])),
    keys: signing.flatMap((field) => signingKey(valueOf(field)) ?? []),
    hidden: [
      ...urlSecrets(target),
      ...signing.map(valueOf),
      ...headers.flatMap(({ field }) =>
        "value" in field && (field.isSecret || isLong(field.value)) ? [field.value] : [],
      ),
    ],
  } satisfies ResolvedConfig
})
