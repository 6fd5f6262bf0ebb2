import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Context, Effect, Layer, type Redacted, Schema } from "effect"
import { Blockwatcher } from "../core/engine/blockwatcher.ts"
import { DeadLetters } from "../core/engine/dead-letters.ts"
import type { Services } from "./graphql/context.ts"
import { GRAPHQL_PATH, makeYoga } from "./graphql/yoga.ts"
import { makeGraphiql, wantsGraphiql } from "./http/graphiql.ts"
import { guard, isJson, isLoopback, notJson } from "./http/guard.ts"
import { actionsHealth, healthBody, isReady } from "./http/health.ts"
import { metricsBody, METRICS_TYPE } from "./http/metrics.ts"
import { sendJson, sendRefusal, sendText } from "./http/reply.ts"
import { tokenCheck, unauthenticated } from "./http/token.ts"
import { makeWebSocketEndpoint, type WebSocketEndpoint } from "./http/websocket.ts"

/** The server could not listen. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  host: Schema.String,
  port: Schema.Number,
  code: Schema.String,
}) {
  override get message() {
    const where = `${this.host}:${this.port}`
    switch (this.code) {
      case "EADDRINUSE":
        return `cannot listen on ${where}: the port is in use. End what uses it, or set BLOCKWATCHER_PORT to another one.`
      case "EACCES":
        return `cannot listen on ${where}: not permitted. Set BLOCKWATCHER_PORT to a port above 1023.`
      case "EADDRNOTAVAIL":
      case "ENOTFOUND":
        return `cannot listen on ${where}: this machine has no such address. Set BLOCKWATCHER_HOST to one that it has.`
      default:
        return `cannot listen on ${where}: ${this.code}. Check BLOCKWATCHER_HOST and BLOCKWATCHER_PORT.`
    }
  }
}

export interface GraphqlServerOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** Without it everyone who reaches the server may use it. */
  readonly token: Redacted.Redacted | null
  /** How long requests may go on once the server closes, in ms. */
  readonly closeTimeoutMs: number
}

/** The GraphQL control plane, listening: HTTP, WebSocket, GraphiQL and health. */
export class GraphqlServer extends Context.Service<
  GraphqlServer,
  {
    /** The address that it is bound to, with the port that it really has. */
    readonly address: { readonly host: string; readonly port: number }
    /** Where a browser finds GraphiQL and clients send operations. */
    readonly url: string
  }
>()("blockwatcher/GraphqlServer") {
  static readonly layer = (
    options: GraphqlServerOptions,
  ): Layer.Layer<GraphqlServer, ListenError, Services | Blockwatcher> => Layer.effect(GraphqlServer, make(options))
}

const make = Effect.fnUntraced(function* (options: GraphqlServerOptions) {
  const services = yield* Effect.context<Services | Blockwatcher>()
  const blockwatcher = yield* Blockwatcher
  const hasToken = options.token !== null
  const yoga = makeYoga(services)
  const checkToken = tokenCheck(options.token)
  const guardOptions = { loopback: isLoopback(options.host), hasToken }
  const webSocket = makeWebSocketEndpoint({ yoga, services, checkToken, guard: guardOptions })
  const graphiql = yield* makeGraphiql(hasToken)

  const graphql = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    if (wantsGraphiql(request)) return yield* graphiql(request, response)
    if (!checkToken(request.headers.authorization)) return sendRefusal(response, unauthenticated)
    if (request.method === "POST" && !isJson(request.headers)) return sendRefusal(response, notJson)
    return void (yield* Effect.promise(async () => yoga(request, response)))
  })

  const route = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    const refusal = guard(guardOptions, request.headers)
    if (refusal !== null) return sendRefusal(response, refusal)
    const path = request.url?.split("?", 1)[0]
    switch (path) {
      case GRAPHQL_PATH:
        return yield* graphql(request, response)
      case "/healthz":
        return sendJson(response, 200, healthBody(yield* blockwatcher.health, yield* actionsHealth))
      case "/metrics": {
        if (!checkToken(request.headers.authorization)) return sendRefusal(response, unauthenticated)
        return sendText(response, METRICS_TYPE, yield* metricsBody)
      }
      case "/readyz": {
        const health = yield* blockwatcher.health
        return sendJson(response, isReady(health) ? 200 : 503, healthBody(health, yield* actionsHealth))
      }
      case "/":
        response.writeHead(302, { location: GRAPHQL_PATH })
        return void response.end()
      default:
        return sendRefusal(response, {
          status: 404,
          code: "NOT_FOUND",
          message: `There is nothing at this path; GraphQL is at ${GRAPHQL_PATH}.`,
        })
    }
  })

  const open = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    open.add(response)
    // A body that was refused unread would keep its connection busy for ever.
    response.once("finish", () => request.resume())
    response.once("close", () => open.delete(response))
    Effect.runForkWith(services)(
      Effect.catchCause(route(request, response), (cause) =>
        Effect.logError("a request failed unexpectedly", cause).pipe(
          Effect.andThen(Effect.sync(() => response.destroy())),
        ),
      ),
    )
  })
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy())
    if (request.url?.split("?", 1)[0] === GRAPHQL_PATH) return webSocket.upgrade(request, socket, head)
    socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n")
  })

  const deadLetters = yield* DeadLetters
  yield* Effect.acquireRelease(listen(server, options), () =>
    // A bulk replay may be under way for a long time: it ends at once and answers what was done.
    Effect.andThen(deadLetters.endReplays, close(server, webSocket, open, options.closeTimeoutMs)),
  )
  const { port } = server.address() as AddressInfo
  const shownHost = options.host.includes(":") ? `[${options.host}]` : options.host
  return GraphqlServer.of({
    address: { host: options.host, port },
    url: `http://${isAnyAddress(options.host) ? "localhost" : shownHost}:${port}${GRAPHQL_PATH}`,
  })
})

const isAnyAddress = (host: string): boolean => host === "0.0.0.0" || host === "::"

const listen = (server: Server, { host, port }: GraphqlServerOptions): Effect.Effect<void, ListenError> =>
  Effect.callback((resume) => {
    const failed = (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new ListenError({ host, port, code: error.code ?? error.message })))
    server.once("error", failed)
    server.listen({ host, port }, () => {
      server.off("error", failed)
      resume(Effect.void)
    })
  })

/** Event streams are the only answers that begin long before they end. */
const isEventStream = (response: ServerResponse): boolean => response.headersSent && !response.writableEnded

/**
 * Takes no more connections, sends WebSocket clients away and ends event streams (both reconnect elsewhere, or later),
 * lets other requests finish, and cuts what is left at the deadline.
 */
const close = (
  server: Server,
  webSocket: WebSocketEndpoint,
  open: ReadonlySet<ServerResponse>,
  timeoutMs: number,
): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    // Node closes the connections that are idle now, not those that become so.
    const idle = setInterval(() => server.closeIdleConnections(), 50)
    server.close(() => {
      clearInterval(idle)
      resume(Effect.void)
    })
    webSocket.close()
    for (const response of open) if (isEventStream(response)) response.destroy()
    return Effect.sync(() => clearInterval(idle))
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeoutMs,
      orElse: () =>
        Effect.sync(() => {
          webSocket.terminate()
          server.closeAllConnections()
        }),
    }),
  )
