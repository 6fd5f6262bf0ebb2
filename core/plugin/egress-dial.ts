import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from "node:dns"
import { isIP } from "node:net"
import { buildConnector } from "undici"
import { HttpFailure } from "./egress-http.ts"

/** Resolves a name to all its addresses; `node:dns` has this shape. */
export type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: Array<LookupAddress>) => void,
) => void

/** The policy forbids what would be dialled. `message` names the host or its addresses. */
class Denied extends Error {}

const CONNECT_TIMEOUT_MS = 10_000

/** Connects only where `mayDial` holds. Node looks no literal up, so that a literal is checked before it. */
export const guardedConnector = (
  mayDial: (address: string) => boolean,
  lookup: Lookup = systemLookup,
): buildConnector.connector => {
  const connect = buildConnector({
    allowH2: false,
    timeout: CONNECT_TIMEOUT_MS,
    lookup: (hostname, options, callback) => {
      lookup(hostname, { ...options, all: true }, (error, addresses) => {
        if (error !== null) return callback(error, "", 0)
        const allowed = addresses.filter(({ address }) => mayDial(address))
        const first = allowed[0]
        if (first === undefined) {
          return callback(new Denied(addresses.map(({ address }) => address).join(", ")), "", 0)
        }
        return options.all === true ? callback(null, allowed) : callback(null, first.address, first.family)
      })
    },
  })
  return (options, callback) =>
    isIP(options.hostname) !== 0 && !mayDial(options.hostname)
      ? callback(new Denied(options.hostname), null)
      : connect(options, callback)
}

const explanations: Readonly<Record<string, string>> = {
  ENOTFOUND: "the name does not resolve",
  EAI_AGAIN: "the name cannot be resolved at present",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed while the request was sent",
  UND_ERR_SOCKET: "the connection was closed before the response was complete",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "the certificate chain is self-signed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the certificate cannot be verified",
  CERT_HAS_EXPIRED: "the certificate has expired",
  EPROTO: "no TLS connection could be made",
  UND_ERR_INVALID_ARG: "a header or the method is not valid in HTTP",
}

/** Tells a person what went wrong from the error's code alone: messages may repeat parts of the request. */
export const failureOf = (origin: string, error: NodeJS.ErrnoException): HttpFailure => {
  if (error instanceof Denied) {
    return new HttpFailure({
      kind: "denied",
      reason: `${origin}: the egress policy does not allow ${error.message}; add its range to the allowed CIDRs`,
    })
  }
  const code = error.code ?? error.name
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT") {
    return new HttpFailure({ kind: "timeout", reason: `${origin}: no connection within ${CONNECT_TIMEOUT_MS} ms` })
  }
  const isUnreadable = error.name === "HTTPParserError" || code.startsWith("HPE_")
  const explanation = isUnreadable ? "the answer is not valid HTTP" : explanations[code]
  return new HttpFailure({
    kind: "transport",
    reason: explanation === undefined ? `${origin}: ${code}` : `${origin}: ${explanation} (${code})`,
  })
}
