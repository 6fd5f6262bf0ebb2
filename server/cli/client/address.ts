import { isIPv6 } from "node:net"
import { Config, Effect, Option, type Redacted, Result } from "effect"
import { displayed, parseHost, parseInteger, parseToken } from "../../environment-values.ts"
import { EnvironmentRefused } from "../../environment.ts"

/** Where a running server is asked, and with what token. */
export interface Address {
  readonly url: string
  readonly token: Redacted.Redacted | null
}

/** A server that listens on every address of this machine is reached by its loopback. */
const reachable = (host: string): string => {
  if (host === "0.0.0.0") return "127.0.0.1"
  if (host === "::") return "[::1]"
  return isIPv6(host) ? `[${host}]` : host
}

const parseUrl = (text: string): Result.Result<string, string> =>
  /^https?:\/\//.test(text) && URL.canParse(text)
    ? Result.succeed(text)
    : Result.fail("expected a URL such as http://127.0.0.1:4000/graphql")

/** The server that `--url` names, or else the one that the BLOCKWATCHER_ variables describe. */
export const readAddress = Effect.fnUntraced(function* (url: Option.Option<string>) {
  const problems: Array<string> = []
  const take = <A>(what: string, shown: string, parsed: Result.Result<A, string>): A | null => {
    if (Result.isSuccess(parsed)) return parsed.success
    problems.push(`${what} is ${shown}: ${parsed.failure}`)
    return null
  }
  const read = Effect.fnUntraced(function* <A>(name: string, parse: (text: string) => Result.Result<A, string>) {
    const variable = `BLOCKWATCHER_${name}`
    const text = Option.getOrNull(yield* Config.option(Config.String(variable)))
    if (text === null || (text === "" && name !== "API_TOKEN")) return null
    return take(variable, displayed(name, text), parse(text))
  })
  const token = yield* read("API_TOKEN", parseToken)
  if (Option.isSome(url)) {
    const named = take("--url", JSON.stringify(url.value), parseUrl(url.value))
    if (named !== null && problems.length === 0) return { url: named, token } satisfies Address
    return yield* new EnvironmentRefused({ problems })
  }
  const host = (yield* read("HOST", parseHost)) ?? "127.0.0.1"
  const port = (yield* read("PORT", parseInteger(0, 65_535))) ?? 4000
  if (port === 0) problems.push("BLOCKWATCHER_PORT is 0, so that only the server knows its port: name it by --url")
  if (problems.length > 0) return yield* new EnvironmentRefused({ problems })
  return { url: `http://${reachable(host)}:${port}/graphql`, token } satisfies Address
})
