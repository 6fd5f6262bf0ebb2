import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Redacted, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { rootCause } from "../../root-cause.ts"
import type { Address } from "./address.ts"
import { CommandFailed } from "./command-failed.ts"

const Answer = Schema.Struct({
  data: Schema.optionalKey(Schema.NullOr(Schema.Unknown)),
  errors: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        message: Schema.String,
        extensions: Schema.optionalKey(Schema.Struct({ code: Schema.optionalKey(Schema.String) })),
      }),
    ),
  ),
})

/** Sends one operation to the server, however long it takes, and answers its data in the shape that is expected. */
export const ask = Effect.fnUntraced(function* <S extends Schema.Codec<any, any>>(
  { url, token }: Address,
  operation: { readonly query: string; readonly variables: Readonly<Record<string, unknown>> },
  shape: S,
): Effect.fn.Return<S["Type"], CommandFailed> {
  const request = HttpClientRequest.post(url).pipe(
    HttpClientRequest.bodyJsonUnsafe(operation),
    token === null ? (same) => same : HttpClientRequest.bearerToken(Redacted.value(token)),
  )
  const response = yield* HttpClient.execute(request).pipe(
    Effect.flatMap(({ status, text }) => Effect.map(text, (body) => ({ status, body }))),
    Effect.provide(NodeHttpClient.layerUndici),
    Effect.mapError(
      (error) =>
        new CommandFailed({
          reason: `no answer from ${url}: ${rootCause(error)}; is the server running there? Start it with \`blockwatcher serve\`, or name another by --url, or by BLOCKWATCHER_HOST and BLOCKWATCHER_PORT`,
        }),
    ),
  )
  const answer = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Answer))(response.body).pipe(
    Effect.filterOrFail(({ data, errors }) => data !== undefined || errors !== undefined),
    Effect.mapError(
      () =>
        new CommandFailed({
          reason: `${url} answers with HTTP ${response.status}, and not as a blockwatcher server does; the URL must be that of its GraphQL, such as http://127.0.0.1:4000/graphql`,
        }),
    ),
  )
  const [error] = answer.errors ?? []
  if (error !== undefined) {
    const code = error.extensions?.code
    if (code === "UNAUTHENTICATED") {
      const what = token === null ? "wants a token" : "does not know this token"
      return yield* new CommandFailed({
        reason: `the server ${what}: set BLOCKWATCHER_API_TOKEN to the one it was started with`,
      })
    }
    return yield* new CommandFailed({ reason: code === undefined ? error.message : `${error.message} (${code})` })
  }
  return yield* Schema.decodeUnknownEffect(shape)(answer.data).pipe(
    Effect.mapError(
      () => new CommandFailed({ reason: `${url} answers otherwise than expected; is it a server of this version?` }),
    ),
  )
})
