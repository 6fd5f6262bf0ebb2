import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { type Context as EffectContext, Cause, Effect } from "effect"
import { type ExecutionArgs, GraphQLError } from "graphql"
import { CloseCode, type ConnectionInitMessage, handleProtocols, makeServer, type SubscribePayload } from "graphql-ws"
import { type WebSocket, WebSocketServer } from "ws"
import type { Services } from "../graphql/context.ts"
import { isExpected, maskDefect } from "../graphql/errors.ts"
import { MAX_MESSAGE_BYTES, type Yoga } from "../graphql/yoga.ts"
import { guard, type GuardOptions } from "./guard.ts"
import { type TokenCheck, unauthenticated } from "./token.ts"

/** A peer that answers no ping for so long is gone. */
const PING_INTERVAL_MS = 12_000

interface Extra {
  readonly request: IncomingMessage
  /** Whether the token came with the connection; without it each operation must bring it. */
  authorized: boolean
}

interface Operation {
  readonly execute: (args: ExecutionArgs) => any
  readonly subscribe: (args: ExecutionArgs) => any
}

const headersOf = (payload: SubscribePayload): Record<string, unknown> => {
  const headers = payload.extensions?.["headers"]
  return typeof headers === "object" && headers !== null ? (headers as Record<string, unknown>) : {}
}

const authorizationIn = (fields: Record<string, unknown>): unknown => {
  const name = Object.keys(fields).find((key) => key.toLowerCase() === "authorization")
  return name === undefined ? undefined : fields[name]
}

/** GraphQL over WebSocket by the graphql-transport-ws protocol. */
export interface WebSocketEndpoint {
  /** Takes a connection over that asked for an upgrade. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /** Tells every client that the server goes away, which ends their subscriptions here; clients may reconnect. */
  readonly close: () => void
  /** Cuts what is still connected. */
  readonly terminate: () => void
}

export const makeWebSocketEndpoint = (options: {
  readonly yoga: Yoga
  readonly services: EffectContext.Context<Services>
  readonly checkToken: TokenCheck
  readonly guard: GuardOptions
}): WebSocketEndpoint => {
  const { yoga, services, checkToken } = options
  const log = Effect.runForkWith(services)
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, handleProtocols })

  const operations = makeServer<ConnectionInitMessage["payload"], Extra>({
    execute: (args) => (args.rootValue as Operation).execute(args),
    subscribe: (args) => (args.rootValue as Operation).subscribe(args),
    onConnect: (context) => {
      const presented = authorizationIn(context.connectionParams ?? {}) ?? context.extra.request.headers.authorization
      context.extra.authorized = checkToken(presented)
      return context.extra.authorized || presented === undefined
    },
    onSubscribe: async (context, _, payload) => {
      // GraphiQL has no connection parameters: its headers come with each operation.
      if (!context.extra.authorized && !checkToken(authorizationIn(headersOf(payload)))) {
        return [new GraphQLError(unauthenticated.message, { extensions: { code: unauthenticated.code } })]
      }
      try {
        const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
          params: payload,
        })
        const document = parse(payload.query)
        const problems = validate(schema, document)
        if (problems.length > 0) return problems
        return {
          schema,
          document,
          operationName: payload.operationName,
          variableValues: payload.variables,
          contextValue: await contextFactory(),
          rootValue: { execute, subscribe } satisfies Operation,
        }
      } catch (error) {
        if (isExpected(error)) return [error]
        const masked = maskDefect(Cause.die(error))
        log(masked.log)
        return [masked.error]
      }
    },
  })

  sockets.on("connection", (socket: WebSocket, request: IncomingMessage) => {
    let answered = true
    const pings = setInterval(() => {
      if (!answered) return socket.terminate()
      answered = false
      socket.ping()
    }, PING_INTERVAL_MS)
    socket.on("pong", () => {
      answered = true
    })
    // What the peer did wrong (a message that is too long, bytes that are no frame) has closed the socket already.
    socket.on("error", (error) => log(Effect.logDebug("a WebSocket connection failed", error.message)))

    const closed = operations.opened(
      {
        protocol: socket.protocol,
        // Resolves when the bytes left this process, so that a subscription waits for a slow client.
        send: (message) =>
          new Promise((resolve, reject) => {
            if (socket.readyState !== socket.OPEN) return resolve()
            socket.send(message, (error) =>
              error == null || socket.readyState !== socket.OPEN ? resolve() : reject(error),
            )
          }),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (handle) => {
          socket.on("message", (data) => {
            handle(String(data)).catch((error: unknown) => {
              log(maskDefect(Cause.die(error)).log)
              socket.close(CloseCode.InternalServerError, "Internal server error")
            })
          })
        },
      },
      { request, authorized: false },
    )
    socket.once("close", (code, reason) => {
      clearInterval(pings)
      void closed(code, String(reason))
    })
  })

  return {
    upgrade: (request, socket, head) => {
      const refusal = guard(options.guard, request.headers)
      if (refusal !== null) {
        socket.end(
          `HTTP/1.1 ${refusal.status} Forbidden\r\nconnection: close\r\ncontent-type: text/plain\r\n\r\n${refusal.message}\n`,
        )
        return
      }
      sockets.handleUpgrade(request, socket, head, (webSocket) => sockets.emit("connection", webSocket, request))
    },
    close: () => {
      for (const socket of sockets.clients) socket.close(1001, "Going away")
    },
    terminate: () => {
      for (const socket of sockets.clients) socket.terminate()
    },
  }
}
