import { type AddressInfo, createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { addressFilter } from "../../../core/plugin/egress-address.ts"
import { guardedConnector } from "../../../core/plugin/egress-dial.ts"
import { undiciTransport } from "../../../core/plugin/egress-undici.ts"
import { Egress, type EgressPolicy, type HttpRequest } from "../../../core/plugin/egress.ts"
import { respond, startReceiver } from "../../support/receiver.ts"

const request = (url: string, options: Partial<HttpRequest> = {}): HttpRequest => ({
  method: "GET",
  url: new URL(url),
  headers: {},
  timeoutMs: 10_000,
  maxBytes: 1_000_000,
  overflow: "fail",
  ...options,
})

const send = (url: string, options: Partial<HttpRequest> = {}) =>
  Egress.use((egress) => egress.request(request(url, options)))

const local = Layer.fresh(Egress.layer({ loopback: true, allow: [] }))

const under = (policy: EgressPolicy) => Effect.provide(Layer.fresh(Egress.layer(policy)))

const failure = (url: string, options: Partial<HttpRequest> = {}) => Effect.flip(send(url, options))

describe("Egress", () => {
  it.live("sends the method, headers and bytes that it was given, and returns status, headers and bytes", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      const bytes = Buffer.from([0, 1, 2, 250, 251, 255])
      receiver.next(respond(201, { headers: { "X-Two": "b", "set-cookie": "a=1" }, body: bytes }))
      const answer = yield* send(`${receiver.origin}/path?q=1`, {
        method: "POST",
        headers: { "content-type": "application/octet-stream", "x-one": "a" },
        body: bytes,
      })
      assert.strictEqual(answer.status, 201)
      assert.strictEqual(answer.headers["x-two"], "b")
      assert.strictEqual(answer.headers["set-cookie"], "a=1")
      assert.deepStrictEqual(Buffer.from(answer.body), bytes)
      const [got] = receiver.requests
      assert.strictEqual(got?.method, "POST")
      assert.strictEqual(got?.path, "/path?q=1")
      assert.strictEqual(got?.headers["x-one"], "a")
      assert.deepStrictEqual(got?.body, bytes)
      assert.isUndefined(got?.headers["accept-encoding"])
    }).pipe(Effect.provide(local)),
  )

  it.live("uses one connection for requests in turn, and several for requests at a time", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* Effect.repeat(send(receiver.origin), { times: 9 })
      assert.strictEqual(new Set(receiver.requests.map(({ clientPort }) => clientPort)).size, 1)

      receiver.always({ kind: "hang" })
      const fibers = yield* Effect.forEach([1, 2, 3, 4], () => Effect.forkChild(send(receiver.origin)))
      const seen = yield* receiver.waitUntil((requests) => requests.length === 14)
      assert.strictEqual(new Set(seen.slice(10).map(({ clientPort }) => clientPort)).size, 4)
      yield* Fiber.interruptAll(fibers)
    }).pipe(Effect.provide(local)),
  )

  it.live("does not follow redirects", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.next(respond(302, { headers: { location: `${receiver.origin}/elsewhere` } }))
      const answer = yield* send(receiver.origin)
      assert.strictEqual(answer.status, 302)
      assert.strictEqual(receiver.requests.length, 1)
    }).pipe(Effect.provide(local)),
  )

  it.live("sends the user and password of a URL as a header, not in the path", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* send(`http://user:p%40ss@127.0.0.1:${receiver.port}/`)
      const expected = `Basic ${Buffer.from("user:p@ss").toString("base64")}`
      assert.strictEqual(receiver.requests[0]?.headers["authorization"], expected)
    }).pipe(Effect.provide(local)),
  )

  it.live("skips informational answers", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.next({
        kind: "raw",
        bytes: "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
      })
      const answer = yield* send(receiver.origin)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(Buffer.from(answer.body).toString(), "ok")
    }).pipe(Effect.provide(local)),
  )

  describe("bounds the body", () => {
    it.live("exactly maxBytes are read in full", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        receiver.always(respond(200, { body: "0123456789" }))
        assert.strictEqual((yield* send(receiver.origin, { maxBytes: 10 })).body.length, 10)
        assert.strictEqual((yield* send(receiver.origin, { maxBytes: 10, overflow: "truncate" })).body.length, 10)
      }).pipe(Effect.provide(local)),
    )

    it.live("one byte more fails as too-large, announced or not", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        receiver.next(
          respond(200, { body: "0123456789" }),
          respond(200, { headers: { "transfer-encoding": "chunked" }, body: "0123456789" }),
        )
        for (const _ of [1, 2]) {
          const error = yield* failure(receiver.origin, { maxBytes: 9 })
          assert.strictEqual(error.kind, "too-large")
          assert.strictEqual(error.reason, `${receiver.origin}: the response is larger than 9 bytes`)
        }
      }).pipe(Effect.provide(local)),
    )

    it.live("an endless body is cut and its connection closed, with either overflow", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        receiver.always({ kind: "endless", status: 200 })
        const answer = yield* send(receiver.origin, { maxBytes: 100_000, overflow: "truncate" })
        assert.strictEqual(answer.body.length, 100_000)
        assert.strictEqual((yield* failure(receiver.origin, { maxBytes: 100_000 })).kind, "too-large")
        yield* receiver.waitUntilAbandoned(2)
      }).pipe(Effect.provide(local)),
    )
  })

  describe("keeps to the time", () => {
    it.live.each([
      { what: "no answer", answer: { kind: "hang" } as const },
      { what: "a body that trickles", answer: { kind: "trickle", status: 200 } as const },
    ])("$what fails as timeout, and the connection is closed", ({ answer }) =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        receiver.always(answer)
        const error = yield* failure(`${receiver.origin}/secret?key=1`, { timeoutMs: 500 })
        assert.strictEqual(error.kind, "timeout")
        assert.strictEqual(error.reason, `${receiver.origin}: no complete response within 500 ms`)
        yield* receiver.waitUntilAbandoned(1)
      }).pipe(Effect.provide(local)),
    )

    it.live("a connection that never becomes secure fails as timeout", () =>
      Effect.gen(function* () {
        const port = yield* silentServer
        const error = yield* failure(`https://127.0.0.1:${port}/`, { timeoutMs: 500 })
        assert.strictEqual(error.kind, "timeout")
      }).pipe(Effect.provide(local)),
    )

    it.live("interrupting the effect closes the connection", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        receiver.always({ kind: "hang" })
        const fiber = yield* Effect.forkChild(send(receiver.origin))
        yield* receiver.waitUntil((requests) => requests.length === 1)
        yield* Fiber.interrupt(fiber)
        yield* receiver.waitUntilAbandoned(1)
        receiver.always(respond(200))
        assert.strictEqual((yield* send(receiver.origin)).status, 200)
      }).pipe(Effect.provide(local)),
    )
  })

  describe("tells why there was no response", () => {
    it.live.each([
      { what: "a reset", answer: { kind: "reset" } as const, says: /the connection was (reset|closed)/ },
      { what: "a cut body", answer: { kind: "cut", status: 200 } as const, says: /closed before the response was/ },
      {
        what: "garbage",
        answer: { kind: "raw", bytes: "what\r\n\r\n" } as const,
        says: /the answer is not valid HTTP/,
      },
    ])("$what fails as transport", ({ answer, says }) =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        receiver.always(answer)
        const error = yield* failure(`http://user:hunter2@127.0.0.1:${receiver.port}/secret?key=1`)
        assert.strictEqual(error.kind, "transport")
        assert.match(error.reason, says)
        assert.isTrue(error.reason.startsWith(`${receiver.origin}: `), error.reason)
        assert.notMatch(error.reason, /secret|key|hunter2/)
      }).pipe(Effect.provide(local)),
    )

    it.live("a closed port fails as transport, and the next request connects again", () =>
      Effect.gen(function* () {
        const { port } = yield* Effect.scoped(startReceiver())
        const error = yield* failure(`http://127.0.0.1:${port}/`)
        assert.strictEqual(error.kind, "transport")
        assert.strictEqual(error.reason, `http://127.0.0.1:${port}: connection refused (ECONNREFUSED)`)
        yield* startReceiver({ port })
        assert.strictEqual((yield* send(`http://127.0.0.1:${port}/`)).status, 200)
      }).pipe(Effect.provide(local)),
    )

    it.live("a name that does not resolve fails as transport", () =>
      Effect.gen(function* () {
        const error = yield* failure("http://nowhere.invalid/secret")
        assert.strictEqual(error.kind, "transport")
        assert.match(error.reason, /^http:\/\/nowhere\.invalid: the name (does not resolve|cannot be resolved)/)
      }).pipe(Effect.provide(local)),
    )

    it.live("a header that HTTP does not allow fails as transport, without its value", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        const error = yield* failure(receiver.origin, { headers: { "x-key": "hunter2\r\nevil: 1" } })
        assert.strictEqual(error.kind, "transport")
        assert.match(error.reason, /a header or the method is not valid/)
        assert.notMatch(error.reason, /hunter2/)
        assert.strictEqual(receiver.requests.length, 0)
      }).pipe(Effect.provide(local)),
    )
  })

  describe("dials what the policy allows, and nothing else", () => {
    it.live.each([
      "http://127.0.0.1",
      "http://2130706433",
      "http://0x7f.1",
      "http://0177.0.0.1",
      "http://127.1",
      "http://127.0.0.1.",
      "http://[::1]",
      "http://[::ffff:127.0.0.1]",
      "http://[::ffff:7f00:1]",
      "http://localhost",
    ])("%s is denied without loopback and reaches nobody", (host) =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        const error = yield* failure(`${host}:${receiver.port}/secret`)
        assert.strictEqual(error.kind, "denied")
        assert.match(error.reason, /the egress policy does not allow /)
        assert.notMatch(error.reason, /secret/)
        assert.strictEqual(receiver.requests.length, 0)
      }).pipe(under({ loopback: false, allow: ["10.0.0.0/8"] })),
    )

    it.live.each([
      "http://0.0.0.0",
      "http://[::]",
      "http://10.0.0.1",
      "http://100.64.0.1",
      "http://169.254.169.254",
      "http://192.168.0.1",
      "http://224.0.0.1",
      "http://[64:ff9b::7f00:1]",
      "http://[fe80::1]",
      "http://[fd00::1]",
      "https://10.0.0.1",
    ])("%s is denied with loopback", (host) =>
      Effect.gen(function* () {
        const error = yield* failure(`${host}/`, { timeoutMs: 2_000 })
        assert.strictEqual(error.kind, "denied")
      }).pipe(Effect.provide(local)),
    )

    it.live.each(["http://2130706433", "http://localhost", "http://[::ffff:127.0.0.1]"])(
      "%s is reached with loopback",
      (host) =>
        Effect.gen(function* () {
          const receiver = yield* startReceiver()
          assert.strictEqual((yield* send(`${host}:${receiver.port}/`)).status, 200)
        }).pipe(Effect.provide(local)),
    )

    it.live("a CIDR opens what it names", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        assert.strictEqual((yield* send(receiver.origin)).status, 200)
      }).pipe(under({ loopback: false, allow: ["127.0.0.0/30"] })),
    )

    it.live("a name is judged by the address that is dialled, each time", () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver()
        const answers = [["127.0.0.1"], ["10.0.0.1", "169.254.169.254"], ["10.0.0.1", "127.0.0.1"]]
        const transport = yield* undiciTransport(
          guardedConnector(addressFilter({ loopback: true, allow: [] }), (_hostname, _options, callback) =>
            callback(
              null,
              (answers.shift() ?? []).map((address) => ({ address, family: 4 })),
            ),
          ),
        )
        const ask = () =>
          transport(request(`http://rebinding.example:${receiver.port}/`, { headers: { connection: "close" } }))
        receiver.always(respond(200, { headers: { connection: "close" } }))
        assert.strictEqual((yield* ask()).status, 200)
        const error = yield* Effect.flip(ask())
        assert.strictEqual(error.kind, "denied")
        assert.strictEqual(
          error.reason,
          `http://rebinding.example:${receiver.port}: the egress policy does not allow 10.0.0.1, 169.254.169.254; add its range to the allowed CIDRs`,
        )
        assert.strictEqual((yield* ask()).status, 200)
      }),
    )

    it.live.each(["ftp://127.0.0.1/secret", "file:///etc/secret", "ws://127.0.0.1/secret"])("%s is denied", (url) =>
      Effect.gen(function* () {
        const error = yield* failure(url)
        assert.strictEqual(error.kind, "denied")
        assert.match(error.reason, /only http and https are allowed/)
        assert.notMatch(error.reason, /secret/)
      }).pipe(Effect.provide(local)),
    )

    it.effect("entries that are no CIDRs are refused together", () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(
          Layer.build(Egress.layer({ loopback: true, allow: ["10.0.0.0/8", "10.0.0.1", "intranet"] })),
        )
        assert.deepStrictEqual(error.entries, ["10.0.0.1", "intranet"])
        assert.match(error.message, /"10.0.0.1", "intranet" are no CIDRs; write ranges such as/)
      }),
    )
  })
})

/** The port of a server that takes connections and never says anything. */
const silentServer = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer((socket) => socket.on("error", () => {}).resume())
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close()),
).pipe(Effect.map((server) => (server.address() as AddressInfo).port))
