import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Clock, Effect, Layer, References } from "effect"
import { HttpClient, HttpClientError, type HttpClientRequest, type HttpClientResponse } from "effect/http"
import { rootCause } from "../root-cause.ts"
import type { TracingEnvironment } from "./environment.ts"

/** Requests that may be under way at once: what a collector does not take in is not kept for it. */
const AT_ONCE = 4

/** How long a collector that failed counts as one that is away, at least. */
const DOWN_MS = 60_000

const failure = (request: HttpClientRequest.HttpClientRequest, description: string) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, description }) })

/** What is wrong, without the request. */
const reasonOf = ({ reason }: HttpClientError.HttpClientError): string =>
  "cause" in reason && reason.cause !== undefined
    ? rootCause(reason.cause)
    : ("description" in reason && reason.description) || reason._tag

/**
 * The client by which spans are sent. A collector that is away, or slow, or refuses them, is told of once; so is that it
 * takes them again.
 */
export const collectorClient = ({ endpoint, timeoutMs }: TracingEnvironment): Layer.Layer<HttpClient.HttpClient> => {
  const where = endpoint.origin + endpoint.pathname
  let underWay = 0
  /** In ms; null while all is well. */
  let downSince: number | null = null

  const down = (reason: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (downSince !== null) return Effect.void
      downSince = now
      return Effect.logWarning(`traces cannot be sent to ${where}: ${reason}; those of the meantime are lost`)
    })

  const up = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    // One that takes some and others not would fill the log.
    if (downSince === null || now - downSince < DOWN_MS) return Effect.void
    downSince = null
    return Effect.logInfo(`traces are sent to ${where} again`)
  })

  const watched = (
    exchange: Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>,
    request: HttpClientRequest.HttpClientRequest,
  ) =>
    Effect.suspend(() => {
      if (underWay === AT_ONCE) return Effect.fail(failure(request, "it does not take them as fast as they come"))
      underWay++
      return exchange.pipe(
        // The answer is read within the time, too; it is kept for whoever reads it again.
        Effect.tap((response) => response.arrayBuffer),
        Effect.timeoutOrElse({
          duration: timeoutMs,
          orElse: () => Effect.fail(failure(request, `no answer within ${timeoutMs} ms`)),
        }),
        Effect.ensuring(Effect.sync(() => underWay--)),
      )
    }).pipe(
      Effect.tap(({ status }) => (status < 300 ? up : down(`it answers HTTP ${status}`))),
      Effect.tapError((error) => down(reasonOf(error))),
      Effect.provideService(References.CurrentLogAnnotations, {}),
    )

  return Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) => HttpClient.transform(client, watched)),
  ).pipe(Layer.provide(NodeHttpClient.layerUndici))
}
