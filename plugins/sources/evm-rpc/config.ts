import { Effect, Redacted, Schema } from "effect"
import type { Problem } from "../../../core/model/problem.ts"
import { PluginRefused } from "../../../core/plugin/error.ts"
import { SecretReference, Secrets } from "../../../core/plugin/secrets.ts"

const orElse =
  <E>(value: E) =>
  <S extends Schema.Codec<any, E>>(schema: S) =>
    schema.pipe(Schema.withDecodingDefault(Effect.succeed(value as S["Encoded"])))

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** A kind of URL that the config may name. */
interface UrlKind {
  readonly schemes: ReadonlyArray<string>
  readonly words: string
}

const http: UrlKind = { schemes: ["http:", "https:"], words: "an http:// or https:// URL" }
const webSocket: UrlKind = { schemes: ["ws:", "wss:"], words: "a ws:// or wss:// URL" }

const isUrl = (kind: UrlKind, text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && kind.schemes.includes(url.protocol)
}

const isReference = Schema.is(SecretReference)

const urlOrReference = (kind: UrlKind) =>
  Schema.String.check(
    Schema.makeFilter((text) => isUrl(kind, text) || isReference(text), {
      message: `expected ${kind.words}, or a secret reference to one (env:NAME or file:PATH)`,
    }),
  )

const expectedStart = { message: 'expected "latest", "latest-N", "earliest" or a block number' }

const Start = Schema.Union([
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }, expectedStart)),
  Schema.String.check(Schema.isPattern(/^(latest|earliest|latest-\d{1,15})$/, expectedStart)),
])

const expectedConfirmations = { message: 'expected a number of blocks up to 100000, "safe" or "finalized"' }

const Confirmations = Schema.Union([
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 }, expectedConfirmations)),
  Schema.Literals(["safe", "finalized"]).annotate(expectedConfirmations),
])

/**
 * The config of an `evm-rpc` network. `start` is the first block that is watched; `ws_url` tells of new blocks early; with
 * `audit` the logs of blocks that were handed over are compared with the blocks' receipts.
 */
export const Config = Schema.Struct({
  chain_id: between(1, Number.MAX_SAFE_INTEGER),
  url: Schema.optionalKey(urlOrReference(http)),
  urls: Schema.optionalKey(Schema.NonEmptyArray(urlOrReference(http))),
  ws_url: Schema.optionalKey(urlOrReference(webSocket)),
  confirmations: Confirmations.pipe(orElse<number | "safe" | "finalized">(12)),
  start: Start.pipe(orElse<number | string>("latest")),
  poll_interval_ms: between(10, 3_600_000).pipe(orElse(1000)),
  max_block_range: between(1, 1_000_000).pipe(orElse(1000)),
  requests_per_second: Schema.optionalKey(
    Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(100_000)),
  ),
  audit: Schema.optionalKey(Schema.Literal("receipts").annotate({ message: 'expected "receipts"' })),
}).check(
  Schema.makeFilter((config) =>
    config.url === undefined && config.urls === undefined
      ? { path: ["urls"], issue: "expected at least one URL of a node, in urls (a list) or url" }
      : undefined,
  ),
)
export type Config = typeof Config.Type

/** Where a node answers. `label` names it in logs and errors and holds nothing secret. */
export interface Endpoint {
  readonly label: string
  readonly url: Redacted.Redacted<URL>
  /** Parts of the URL that may be keys; they are cut out of everything that a node or the network says. */
  readonly secrets: ReadonlyArray<string>
}

/** A path segment or query value of this length may be a key. */
const KEY_LENGTH = 8

const secretsOf = (url: URL, hideHost: boolean): ReadonlyArray<string> =>
  [
    url.username,
    url.password,
    ...url.pathname.split("/").filter((segment) => segment.length >= KEY_LENGTH),
    ...[...url.searchParams.values()].filter((value) => value.length >= KEY_LENGTH),
    ...(hideHost ? [url.host, url.hostname] : []),
  ].filter((secret) => secret !== "")

const resolveEndpoint = Effect.fnUntraced(function* (
  path: string,
  text: string,
  kind: UrlKind,
): Effect.fn.Return<Endpoint, Problem, Secrets> {
  if (!isReference(text)) {
    const url = new URL(text)
    return { label: url.host, url: Redacted.make(url), secrets: secretsOf(url, false) }
  }
  const secrets = yield* Secrets
  const value = yield* secrets.resolve(text).pipe(Effect.mapError(({ message }) => ({ path, message })))
  const plain = Redacted.value(value).trim()
  if (!isUrl(kind, plain))
    return yield* Effect.fail({ path, message: `the secret ${text} does not hold ${kind.words}` })
  const url = new URL(plain)
  return { label: text, url: Redacted.make(url), secrets: secretsOf(url, true) }
})

/** Where a network's chain is read. */
export interface Endpoints {
  /** In the order in which they are preferred. */
  readonly nodes: ReadonlyArray<Endpoint>
  /** The WebSocket that tells of new blocks; null without one. */
  readonly socket: Endpoint | null
}

/** Resolves `url`, `urls` and `ws_url`; all problems are refused together. */
export const resolveEndpoints = Effect.fnUntraced(function* (
  config: Pick<Config, "url" | "urls" | "ws_url">,
): Effect.fn.Return<Endpoints, PluginRefused, Secrets> {
  const listed: Array<readonly [path: string, text: string]> = []
  if (config.url !== undefined) listed.push(["url", config.url])
  for (const [i, text] of (config.urls ?? []).entries()) listed.push([`urls.${i}`, text])
  const distinct = listed.filter(([, text], i) => listed.findIndex(([, other]) => other === text) === i)
  const [nodes, wrong] = yield* Effect.partition(distinct, ([path, text]) => resolveEndpoint(path, text, http))
  const [sockets, wrongSocket] = yield* Effect.partition(config.ws_url === undefined ? [] : [config.ws_url], (text) =>
    resolveEndpoint("ws_url", text, webSocket),
  )
  const problems = [...wrong, ...wrongSocket]
  if (problems.length > 0) return yield* PluginRefused.of(problems)
  return { nodes, socket: sockets[0] ?? null }
})

/** Where `start` lies: a block number, or so many blocks behind the newest. */
export type StartAt =
  | { readonly _tag: "Block"; readonly number: number }
  | { readonly _tag: "Behind"; readonly blocks: number }

export const readStart = (start: Config["start"]): StartAt => {
  if (typeof start === "number") return { _tag: "Block", number: start }
  if (start === "earliest") return { _tag: "Block", number: 0 }
  return { _tag: "Behind", blocks: start === "latest" ? 0 : Number(start.slice("latest-".length)) }
}
