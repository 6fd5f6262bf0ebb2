import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { addressFilter, isCidr } from "./egress-address.ts"
import { guardedConnector } from "./egress-dial.ts"
import { HttpFailure, type HttpRequest, type HttpResponse } from "./egress-http.ts"
import { type OpenSocket, socketOpener, type SocketRequest } from "./egress-socket.ts"
import { undiciTransport } from "./egress-undici.ts"

export { HttpFailure, type HttpRequest, type HttpResponse, type OpenSocket, type SocketRequest }

/** Where the runtime may dial. Public addresses are always allowed. */
export interface EgressPolicy {
  readonly loopback: boolean
  /** CIDRs beside the public addresses. */
  readonly allow: ReadonlyArray<string>
}

/** Entries of an egress policy that are no CIDRs. */
export class EgressPolicyInvalid extends Schema.TaggedError<EgressPolicyInvalid>()("EgressPolicyInvalid", {
  entries: Schema.Array(Schema.String),
}) {
  override get message() {
    const shown = this.entries.map((entry) => JSON.stringify(entry)).join(", ")
    return `egress policy: ${shown} ${this.entries.length === 1 ? "is no CIDR" : "are no CIDRs"}; write ranges such as 10.0.0.0/8, 192.168.1.5/32 or fd00::/8`
  }
}

/**
 * The one way out: HTTP over keep-alive connections, and WebSockets. Every dialled address is checked against the egress
 * policy. Redirects are not followed, and a failure names no more of the URL than its origin.
 */
export class Egress extends Context.Service<
  Egress,
  {
    readonly request: (request: HttpRequest) => Effect.Effect<HttpResponse, HttpFailure>
    readonly openSocket: (request: SocketRequest) => Effect.Effect<OpenSocket, HttpFailure, Scope.Scope>
  }
>()("blockwatcher/Egress") {
  static readonly layer = (policy: EgressPolicy): Layer.Layer<Egress, EgressPolicyInvalid> =>
    Layer.effect(
      Egress,
      Effect.gen(function* () {
        const entries = policy.allow.filter((entry) => !isCidr(entry))
        if (entries.length > 0) return yield* new EgressPolicyInvalid({ entries })
        const connect = guardedConnector(addressFilter(policy))
        const send = yield* undiciTransport(connect)
        const openSocket = socketOpener(connect)
        return Egress.of({
          request: (request) =>
            hasScheme(request.url, "http:", "https:")
              ? send(request)
              : denied(request.url, "only http and https are allowed"),
          openSocket: (request) =>
            hasScheme(request.url, "ws:", "wss:")
              ? openSocket(request)
              : denied(request.url, "only ws and wss are allowed"),
        })
      }),
    )
}

const hasScheme = (url: URL, ...schemes: ReadonlyArray<string>): boolean => schemes.includes(url.protocol)

const denied = (url: URL, what: string) =>
  Effect.fail(new HttpFailure({ kind: "denied", reason: `${url.protocol}//${url.host}: ${what}` }))
