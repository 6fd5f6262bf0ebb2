import { createServer } from "node:http"
import { once } from "node:events"
import { type AddressInfo, createServer as createTcpServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type WebSocket, WebSocketServer } from "ws"
import { Egress, type EgressPolicy, type SocketRequest } from "../../../core/plugin/egress.ts"
import { respond, startReceiver } from "../../support/receiver.ts"

const local = Layer.fresh(Egress.layer({ loopback: true, allow: [] }))

const under = (policy: EgressPolicy) => Effect.provide(Layer.fresh(Egress.layer(policy)))

const open = (url: string, options: Partial<SocketRequest> = {}) =>
  Egress.use((egress) =>
    egress.openSocket({
      url: new URL(url),
      headers: {},
      timeoutMs: 10_000,
      maxBytes: 1000,
      idleMs: 60_000,
      ...options,
    }),
  )

/** A WebSocket server that does as it is told for each connection. */
const served = (onConnection: (socket: WebSocket, authorization: string | undefined) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const http = createServer()
      const sockets = new WebSocketServer({ server: http })
      sockets.on("connection", (socket, request) => onConnection(socket, request.headers.authorization))
      http.listen(0, "127.0.0.1")
      await once(http, "listening")
      return { http, sockets, url: `ws://127.0.0.1:${(http.address() as AddressInfo).port}` }
    }),
    ({ http, sockets }) =>
      Effect.promise(async () => {
        for (const socket of sockets.clients) socket.terminate()
        const closed = once(http, "close")
        http.close()
        http.closeAllConnections()
        await closed
      }),
  )

/** A TCP server that takes connections and never says anything. */
const mute = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createTcpServer((socket) => socket.on("error", () => {}))
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    return server
  }),
  (server) => Effect.sync(() => server.close()),
)

describe("a WebSocket through Egress", () => {
  it.live("sends and receives texts in order, with the headers that it was given, and closes with its scope", () =>
    Effect.gen(function* () {
      const ended = Promise.withResolvers<void>()
      const { url } = yield* served((socket, authorization) => {
        socket.on("message", (data) => {
          for (const text of [authorization!, String(data), "more"]) socket.send(text)
        })
        socket.on("close", () => ended.resolve())
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const socket = yield* open(`${url}/path`, { headers: { authorization: "Bearer x" } })
          yield* socket.send("hello")
          assert.deepStrictEqual(
            [yield* socket.receive, yield* socket.receive, yield* socket.receive],
            ["Bearer x", "hello", "more"],
          )
        }),
      )
      yield* Effect.promise(() => ended.promise)
    }).pipe(Effect.scoped, Effect.provide(local)),
  )

  it.live("that the other side closes, or floods, fails to receive, after what came before", () =>
    Effect.gen(function* () {
      const { url } = yield* served((socket) => {
        socket.on("message", (data) => {
          const text = String(data)
          socket.send("last")
          if (text === "close") socket.close()
          if (text === "cut") socket.terminate()
          if (text === "large") socket.send("x".repeat(1001))
          if (text === "flood") for (let i = 0; i < 10_000; i++) socket.send("x")
        })
      })
      for (const [text, reason] of [
        ["close", /the connection was closed/],
        ["cut", /the connection was closed/],
        ["large", /the connection was closed/],
      ] as const) {
        const socket = yield* open(url)
        yield* socket.send(text)
        assert.strictEqual(yield* socket.receive, "last")
        const failed = yield* Effect.flip(socket.receive)
        assert.match(failed.reason, reason)
        assert.include(failed.reason, url)
      }
      const socket = yield* open(url)
      yield* socket.send("flood")
      const failed = yield* Effect.flip(Effect.forever(socket.receive))
      assert.match(failed.reason, /faster than they were taken/)
    }).pipe(Effect.scoped, Effect.provide(local)),
  )

  it.live("that is idle stays open while pings are answered, and is over when they are not", () =>
    Effect.gen(function* () {
      let pings = 0
      const { url } = yield* served((socket) => socket.on("ping", () => pings++))
      const socket = yield* open(url, { idleMs: 20 })
      const outcome = yield* Effect.timeoutOption(socket.receive, "300 millis")
      assert.strictEqual(outcome._tag, "None")
      assert.isAtLeast(pings, 3)

      const dead = yield* served((socket) => socket.pause())
      const deaf = yield* open(dead.url, { idleMs: 20 })
      assert.match((yield* Effect.flip(deaf.receive)).reason, /nothing came for 40 ms/)
    }).pipe(Effect.scoped, Effect.provide(local)),
  )

  it.live("that cannot be opened fails in time and says why", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.always(respond(401))
      const refused = yield* Effect.flip(open(`ws://127.0.0.1:${receiver.port}/secret`))
      assert.match(refused.reason, /HTTP 401 in place of a WebSocket/)
      assert.notInclude(refused.reason, "secret")
      receiver.always(respond(302, { headers: { location: `http://127.0.0.1:${receiver.port}/other` } }))
      assert.match((yield* Effect.flip(open(`ws://127.0.0.1:${receiver.port}/`))).reason, /HTTP 302/)

      const server = yield* mute
      const { port } = server.address() as AddressInfo
      const hangs = yield* Effect.flip(open(`ws://127.0.0.1:${port}`, { timeoutMs: 100 }))
      assert.strictEqual(hangs.kind, "timeout")
      assert.match(hangs.reason, /not open within 100 ms/)

      const { port: left } = yield* Effect.scoped(Effect.map(startReceiver(), ({ port }) => ({ port })))
      const gone = yield* Effect.flip(open(`ws://127.0.0.1:${left}`))
      assert.match(gone.reason, /connection refused/)
    }).pipe(Effect.scoped, Effect.provide(local)),
  )

  it.live("is dialled only where the policy allows it", () =>
    Effect.gen(function* () {
      const { url } = yield* served(() => {})
      for (const target of [url, url.replace("127.0.0.1", "localhost"), url.replace("127.0.0.1", "2130706433")]) {
        const failed = yield* Effect.flip(open(target))
        assert.strictEqual(failed.kind, "denied")
        assert.match(failed.reason, /the egress policy does not allow/)
      }
      const scheme = yield* Effect.flip(open(url.replace("ws:", "http:")))
      assert.match(scheme.reason, /only ws and wss are allowed/)
    }).pipe(Effect.scoped, under({ loopback: false, allow: [] })),
  )
})
