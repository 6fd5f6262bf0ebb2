import { Context, Effect, Layer, Schema } from "effect"
import { addressFilter, isCidr } from "./egress-address.ts"
import { HttpFailure, type HttpRequest, type HttpResponse } from "./egress-http.ts"
import { undiciTransport } from "./egress-undici.ts"

export { HttpFailure, type HttpRequest, type HttpResponse }

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
 * The one way out: HTTP over keep-alive connections whose every dialled address is checked against the egress policy.
 * Redirects are not followed, compression is not asked for, and a failure names no more of the URL than its origin.
 */
export class Egress extends Context.Service<
  Egress,
  { readonly request: (request: HttpRequest) => Effect.Effect<HttpResponse, HttpFailure> }
>()("blockwatcher/Egress") {
  static readonly layer = (policy: EgressPolicy): Layer.Layer<Egress, EgressPolicyInvalid> =>
    Layer.effect(
      Egress,
      Effect.gen(function* () {
        const entries = policy.allow.filter((entry) => !isCidr(entry))
        if (entries.length > 0) return yield* new EgressPolicyInvalid({ entries })
        const send = yield* undiciTransport(addressFilter(policy))
        return Egress.of({
          request: (request) =>
            isHttp(request.url)
              ? send(request)
              : Effect.fail(
                  new HttpFailure({
                    kind: "denied",
                    reason: `${request.url.protocol}//${request.url.host}: only http and https are allowed`,
                  }),
                ),
        })
      }),
    )
}

const isHttp = (url: URL): boolean => url.protocol === "http:" || url.protocol === "https:"
