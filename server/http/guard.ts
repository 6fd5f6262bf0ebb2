import type { IncomingHttpHeaders } from "node:http"
import { isIP } from "node:net"
import type { Refusal } from "./reply.ts"

/** The host of a `Host` header or an origin, without port and brackets; null if it is malformed. */
const hostname = (text: string): string | null => {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`)
  return url === null ? null : url.hostname.replace(/^\[|\]$/g, "").toLowerCase()
}

/** Whether a bound address or a host name means this machine alone. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" ||
  host.endsWith(".localhost") ||
  host === "::1" ||
  host === "::ffff:127.0.0.1" ||
  (isIP(host) === 4 && host.startsWith("127."))

/** What decides which requests are let in. */
export interface GuardOptions {
  readonly loopback: boolean
  /** A page of another site cannot know the token, so with one neither host nor origin says anything. */
  readonly hasToken: boolean
}

/**
 * Keeps pages of other sites, which a browser on this machine may have open, from using a server that asks for no
 * token: by its `Host` a request to a name that was rebound to loopback is told, by its `Origin` one from another site.
 */
export const guard = ({ loopback, hasToken }: GuardOptions, headers: IncomingHttpHeaders): Refusal | null => {
  if (hasToken) return null
  const host = hostname(headers.host ?? "")
  if (loopback && (host === null || !isLoopback(host))) {
    return {
      status: 403,
      code: "FORBIDDEN",
      message: `This server listens on loopback and answers to localhost and 127.0.0.1 only, not to ${JSON.stringify(headers.host ?? "")}. To serve another name, set BLOCKWATCHER_API_TOKEN.`,
    }
  }
  const { origin } = headers
  if (origin !== undefined && URL.parse(origin)?.host !== headers.host?.toLowerCase()) {
    return {
      status: 403,
      code: "FORBIDDEN",
      message: `Requests from pages of another origin (${JSON.stringify(origin)}) are refused. To allow them to authenticate, set BLOCKWATCHER_API_TOKEN.`,
    }
  }
  const site = headers["sec-fetch-site"]
  if ((site === "cross-site" || site === "same-site") && headers["sec-fetch-mode"] !== "navigate") {
    return { status: 403, code: "FORBIDDEN", message: "Requests from pages of another site are refused." }
  }
  return null
}

/** Bodies that a page of another site can send without being asked are refused, whatever they hold. */
export const isJson = (headers: IncomingHttpHeaders): boolean =>
  /^application\/(graphql\+)?json\s*(;|$)/i.test(headers["content-type"] ?? "")

export const notJson: Refusal = {
  status: 415,
  code: "UNSUPPORTED_MEDIA_TYPE",
  message: "Send operations as JSON, with `content-type: application/json`.",
}
