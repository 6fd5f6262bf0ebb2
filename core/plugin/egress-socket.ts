import type { Duplex } from "node:stream"
import { Agent, type buildConnector, type Dispatcher, ping, WebSocket } from "undici"
import { Cause, Effect, Queue, type Scope } from "effect"
import { failureOf } from "./egress-dial.ts"
import { HttpFailure } from "./egress-http.ts"

/** A WebSocket to open, with its bounds. */
export interface SocketRequest {
  /** `ws://` or `wss://`. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Covers connect and handshake, in ms. */
  readonly timeoutMs: number
  /** A longer message ends the connection. */
  readonly maxBytes: number
  /** When nothing came for so many ms a ping is sent; when nothing comes for as long again the connection is over. */
  readonly idleMs: number
  /** Messages that may wait to be received; a connection that brings more is over. 256 unless told. */
  readonly maxWaiting?: number
}

/** An open WebSocket. It closes with its scope. */
export interface OpenSocket {
  readonly send: (text: string) => Effect.Effect<void>
  /** The next text message; fails once the connection is over. */
  readonly receive: Effect.Effect<string, HttpFailure>
}

const MAX_WAITING = 256

/** A handler that also tells the status of the answer. */
const tellingStatus = (
  handler: Dispatcher.DispatchHandler,
  tell: (status: number) => void,
): Dispatcher.DispatchHandler => ({
  onRequestStart: (...start) => handler.onRequestStart?.(...start),
  onRequestUpgrade: (...upgrade) => handler.onRequestUpgrade?.(...upgrade),
  onResponseStart: (...start) => {
    tell(start[1])
    return handler.onResponseStart?.(...start)
  },
  onResponseData: (...data) => handler.onResponseData?.(...data),
  onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
  onResponseError: (...error) => handler.onResponseError?.(...error),
})

/** One connection, over an agent of its own: so that closing leaves nothing open, whatever the other side does. */
class Connection {
  readonly messages: Queue.Queue<string, HttpFailure>
  readonly opened = Promise.withResolvers<HttpFailure | null>()
  readonly #request: SocketRequest
  readonly #agent: Agent
  readonly #socket: WebSocket
  #raw: (Duplex & { readonly bytesRead: number }) | undefined
  #dialFailure: HttpFailure | undefined
  #status: number | undefined

  constructor(request: SocketRequest, connect: buildConnector.connector, messages: Queue.Queue<string, HttpFailure>) {
    this.messages = messages
    this.#request = request
    this.#agent = new Agent({
      allowH2: false,
      connect: (options, callback) =>
        connect(options, (...result) => {
          const [error, socket] = result
          if (error !== null) this.#dialFailure = failureOf(request.url.origin, error)
          else this.#raw = socket
          callback(...result)
        }),
      webSocket: { maxPayloadSize: request.maxBytes },
    })
    const dispatcher = this.#agent.compose(
      (dispatch) => (options, handler) =>
        dispatch(
          options,
          tellingStatus(handler, (status) => {
            this.#status = status
          }),
        ),
    )
    this.#socket = new WebSocket(request.url, { dispatcher, headers: { ...request.headers } })
    this.#socket.addEventListener("open", () => this.opened.resolve(null))
    this.#socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string" && !Queue.offerUnsafe(this.messages, data))
        this.end(this.failure("transport", "messages came faster than they were taken"))
    })
    this.#socket.addEventListener("close", () => this.end(this.#reason()))
  }

  /** Bytes that came so far. */
  get bytesRead(): number {
    return this.#raw?.bytesRead ?? 0
  }

  failure(kind: HttpFailure["kind"], what: string): HttpFailure {
    return new HttpFailure({ kind, reason: `${this.#request.url.protocol}//${this.#request.url.host}: ${what}` })
  }

  send(text: string): void {
    this.#socket.send(text)
  }

  ping(): void {
    ping(this.#socket)
  }

  /** Ends the connection at once, for the reason that is given first. */
  end(failure: HttpFailure): void {
    this.opened.resolve(failure)
    Queue.failCauseUnsafe(this.messages, Cause.fail(failure))
    this.#raw?.destroy()
  }

  /** Says good-bye and closes, without a wait for the other side. */
  async close(): Promise<void> {
    this.#socket.close()
    this.#raw?.destroy()
    await this.#agent.destroy()
  }

  #reason(): HttpFailure {
    if (this.#dialFailure !== undefined) return this.#dialFailure
    return this.#status === undefined
      ? this.failure("transport", "the connection was closed")
      : this.failure("transport", `the server answered HTTP ${this.#status} in place of a WebSocket`)
  }
}

/** Pings a connection on which nothing comes, and ends it when nothing comes then either. */
const watchIdle = Effect.fnUntraced(function* (connection: Connection, idleMs: number) {
  let seen = connection.bytesRead
  let pinged = false
  for (;;) {
    yield* Effect.sleep(idleMs)
    const idle = connection.bytesRead === seen
    seen = connection.bytesRead
    if (idle && pinged) return connection.end(connection.failure("timeout", `nothing came for ${2 * idleMs} ms`))
    pinged = idle
    if (idle) connection.ping()
  }
})

/** Opens WebSockets over `connect`. */
export const socketOpener =
  (connect: buildConnector.connector) =>
  (request: SocketRequest): Effect.Effect<OpenSocket, HttpFailure, Scope.Scope> =>
    Effect.gen(function* () {
      const messages = yield* Queue.dropping<string, HttpFailure>(request.maxWaiting ?? MAX_WAITING)
      const connection = yield* Effect.acquireRelease(
        Effect.sync(() => new Connection(request, connect, messages)),
        (connection) => Effect.promise(() => connection.close()),
      )
      const failed = yield* Effect.promise(() => connection.opened.promise).pipe(
        Effect.timeoutOrElse({
          duration: request.timeoutMs,
          orElse: () => Effect.succeed(connection.failure("timeout", `not open within ${request.timeoutMs} ms`)),
        }),
      )
      if (failed !== null) return yield* failed
      yield* Effect.forkScoped(watchIdle(connection, request.idleMs))
      return {
        send: (text) => Effect.sync(() => connection.send(text)),
        receive: Queue.take(messages),
      }
    })
