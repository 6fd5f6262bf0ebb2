import { Effect, Redacted } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { WebSocket } from "ws"
import { StorageError } from "../../core/storage/error.ts"
import { type GraphqlError, subscribe, webSocketClient } from "../support/graphql.ts"
import { emitted } from "./fake-engine.ts"
import { serveFake, until } from "./serve-fake.ts"

const MATCHES = `subscription ($after: String) { matches(after: $after) { position match { id } } }`

let server: Awaited<ReturnType<typeof serveFake>>
beforeEach(async () => {
  server = await serveFake()
})
afterEach(() => server.close())

const failure = async (promise: Promise<unknown>): Promise<ReadonlyArray<GraphqlError>> =>
  promise.then(
    () => assert.fail("it should have failed"),
    (errors: ReadonlyArray<GraphqlError>) => errors,
  )

describe("a subscription over WebSocket", () => {
  it("delivers items as they come, and again behind a position", async () => {
    const live = subscribe(server.url, MATCHES)
    const first = live.next()
    await until(() => server.engine.running === 1, "the stream runs")
    server.engine.publish(emitted(1), emitted(2))
    assert.deepEqual(await first, { matches: { position: "p1", match: { id: "match-1" } } })
    assert.deepEqual(await live.next(), { matches: { position: "p2", match: { id: "match-2" } } })
    await live.close()
    const resumed = subscribe(server.url, MATCHES, { after: "p1" })
    assert.deepEqual(await resumed.next(), { matches: { position: "p2", match: { id: "match-2" } } })
    await resumed.close()
  })

  it("carries the feed in one order, each item with its type", async () => {
    server.engine.publish(
      emitted(1),
      {
        _tag: "MatchRetracted",
        position: "p2",
        network: "devnet",
        monitor: "transfers",
        matchId: "match-1",
        life: 1,
        cursor: { primary: 1, secondary: 5 },
      },
      {
        _tag: "CheckpointAdvanced",
        position: "p2",
        network: "devnet",
        checkpoint: { network: "devnet", cursor: { primary: 2, secondary: 0 }, updatedAt: 0 },
      },
    )
    const feed = subscribe(
      server.url,
      `subscription { feed(network: "devnet", monitor: "transfers", after: "0") { __typename position network
         ... on MatchEmitted { life late emission match { time } } ... on MatchRetracted { matchId monitor life cursor { primary secondary } }
         ... on CheckpointAdvanced { checkpoint { cursor { primary } updatedAt } } } }`,
    )
    const items = [await feed.next(), await feed.next(), await feed.next()]
    assert.deepEqual(items, [
      {
        feed: {
          __typename: "MatchEmitted",
          position: "p1",
          network: "devnet",
          life: 1,
          late: false,
          emission: null,
          match: { time: "2023-11-14T22:13:20.000Z" },
        },
      },
      {
        feed: {
          __typename: "MatchRetracted",
          position: "p2",
          network: "devnet",
          matchId: "match-1",
          monitor: "transfers",
          life: 1,
          cursor: { primary: "1", secondary: 5 },
        },
      },
      {
        feed: {
          __typename: "CheckpointAdvanced",
          position: "p2",
          network: "devnet",
          checkpoint: { cursor: { primary: "2" }, updatedAt: "1970-01-01T00:00:00.000Z" },
        },
      },
    ])
    assert.deepEqual(server.engine.calls[0]?.input, {
      network: "devnet",
      monitor: "transfers",
      kinds: ["MatchEmitted", "MatchRetracted", "CheckpointAdvanced"],
      after: "0",
    })
    await feed.close()
  })

  it("carries retractions and checkpoints alone", async () => {
    const retractions = subscribe(server.url, `subscription { retractions(after: "0") { matchId } }`)
    server.engine.publish(emitted(1), {
      _tag: "MatchRetracted",
      position: "p2",
      network: "devnet",
      monitor: "transfers",
      matchId: "match-1",
      life: 1,
      cursor: { primary: 1, secondary: 5 },
    })
    assert.deepEqual(await retractions.next(), { retractions: { matchId: "match-1" } })
    await retractions.close()
    server.engine.checkpoints = ["other", "devnet"].map((network) => ({
      network,
      cursor: { primary: 2, secondary: 0 },
      updatedAt: 0,
    }))
    const checkpoints = subscribe(
      server.url,
      `subscription { checkpoints(network: "devnet") { network cursor { primary } } }`,
    )
    assert.deepEqual(await checkpoints.next(), { checkpoints: { network: "devnet", cursor: { primary: "2" } } })
    await checkpoints.close()
  })

  it("is refused with the oldest position when its own is no longer kept", async () => {
    const stale = subscribe(server.url, MATCHES, { after: "trimmed" })
    const [error] = await failure(stale.next())
    assert.deepEqual(error?.extensions, { code: "STALE_POSITION", oldest: "p1" })
    await stale.close()
    const invented = subscribe(server.url, MATCHES, { after: "invented" })
    assert.strictEqual((await failure(invented.next()))[0]?.extensions?.code, "INVALID_POSITION")
    await invented.close()
  })

  it("ends with the error of its stream", async () => {
    server.engine.publish(emitted(1))
    const broken = subscribe(server.url, MATCHES, { after: "0" })
    await broken.next()
    server.engine.streamFailure = Effect.fail(new StorageError({ operation: "feed", reason: "gone", retryable: false }))
    server.engine.wake()
    assert.strictEqual((await failure(broken.next()))[0]?.extensions?.code, "STORAGE_UNAVAILABLE")
    await broken.close()
  })

  it("ends its stream when the client completes it, closes, or vanishes", async () => {
    const completed = subscribe(server.url, MATCHES)
    void completed.next().catch(() => undefined)
    await until(() => server.engine.running === 1, "the stream runs")
    await completed.close()
    await until(() => server.engine.running === 0, "the stream of the completed subscription ended")

    const socket = new WebSocket(server.url.replace("http", "ws"), "graphql-transport-ws")
    socket.on("open", () => socket.send(JSON.stringify({ type: "connection_init" })))
    socket.on("message", (data) => {
      if (JSON.parse(String(data)).type === "connection_ack") {
        socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: MATCHES } }))
      }
    })
    await until(() => server.engine.running === 1, "the stream runs")
    socket.terminate()
    await until(() => server.engine.running === 0, "the stream of the vanished client ended")
  })

  it("waits for a client that does not read", async () => {
    const socket = new WebSocket(server.url.replace("http", "ws"), "graphql-transport-ws")
    let received = 0
    socket.on("open", () => socket.send(JSON.stringify({ type: "connection_init" })))
    socket.on("message", (data) => {
      const message = JSON.parse(String(data))
      if (message.type === "connection_ack") {
        socket.send(
          JSON.stringify({
            id: "1",
            type: "subscribe",
            payload: { query: `subscription { matches(after: "0") { match { id event } } }` },
          }),
        )
      }
      if (message.type === "next") {
        received++
        socket.pause()
      }
    })
    const large = "x".repeat(100_000)
    const total = 1_000
    server.engine.publish(
      ...Array.from({ length: total }, (_, number) => {
        const item = emitted(number)
        return { ...item, match: { ...item.match, event: { large } } }
      }),
    )
    await until(() => received > 0, "the first item arrived")
    let before = -1
    await until(() => {
      const steady = before === server.engine.pulled
      before = server.engine.pulled
      return steady && before > 0
    }, "the stream waits")
    assert.isBelow(server.engine.pulled, total / 2)
    socket.terminate()
    await until(() => server.engine.running === 0, "the stream ended")
  })

  it("also answers queries and mutations, under the same limits", async () => {
    const client = webSocketClient(server.url)
    const once = async (query: string) => (await client.iterate({ query }).next()).value
    assert.deepEqual((await once(`{ networks { id } }`)).data, { networks: [{ id: "devnet" }] })
    assert.deepEqual((await once(`mutation { deleteSink(id: "alerts") }`)).data, { deleteSink: true })
    const deep = `{ networks { ${"monitors { network { ".repeat(6)} id ${"} }".repeat(6)} } }`
    const [tooDeep] = await failure(once(deep))
    assert.strictEqual(tooDeep?.extensions?.code, "TOO_COMPLEX")
    assert.match((await failure(once("{ nonsense }")))[0]!.message, /Cannot query field/)
    assert.match((await failure(once("{ broken")))[0]!.message, /Syntax Error/)
    await client.dispose()
  })

  it("is refused to pages of other sites", async () => {
    const { port } = server.address
    for (const headers of [{ origin: "http://evil.example" }, { host: `evil.example:${port}` }]) {
      const status = await new Promise((resolve) => {
        const socket = new WebSocket(server.url.replace("http", "ws"), "graphql-transport-ws", { headers })
        socket.on("unexpected-response", (_, response) => resolve(response.statusCode))
        socket.on("open", () => resolve("open"))
        socket.on("error", () => undefined)
      })
      assert.strictEqual(status, 403)
    }
  })

  it("survives messages that are no messages, or too long", async () => {
    for (const [message, code] of [
      ["not json", 4400],
      ["x".repeat(1_100_000), 1009],
    ] as const) {
      const closed = await new Promise((resolve) => {
        const socket = new WebSocket(server.url.replace("http", "ws"), "graphql-transport-ws")
        socket.on("open", () => socket.send(message))
        socket.on("close", resolve)
      })
      assert.strictEqual(closed, code)
    }
  })
})

describe("a subscription to a server with a token", () => {
  beforeEach(async () => {
    await server.close()
    server = await serveFake({ token: Redacted.make("s3cret") })
    server.engine.publish(emitted(1))
  })
  const authorization = "Bearer s3cret"

  it("takes it from the connection's parameters, its headers, or the operation's headers", async () => {
    const ways: ReadonlyArray<Parameters<typeof subscribe>[3]> = [
      { connectionParams: { authorization } },
      { connectionParams: { Authorization: authorization } },
      { headers: { authorization } },
    ]
    for (const options of ways) {
      const items = subscribe(server.url, MATCHES, { after: "0" }, options)
      assert.strictEqual((await items.next()).matches.position, "p1")
      await items.close()
    }
    const client = webSocketClient(server.url)
    const items = client.iterate<any>({
      query: MATCHES,
      variables: { after: "0" },
      extensions: { headers: { authorization } },
    })
    assert.strictEqual((await items.next()).value.data.matches.position, "p1")
    await items.return?.(undefined)
    await client.dispose()
  })

  it("is refused without it, and the connection with a wrong one", async () => {
    const none = subscribe(server.url, MATCHES, { after: "0" })
    assert.strictEqual((await failure(none.next()))[0]?.extensions?.code, "UNAUTHENTICATED")
    await none.close()
    let closed = 0
    const wrong = subscribe(
      server.url,
      MATCHES,
      { after: "0" },
      { connectionParams: { authorization: "Bearer wrong" }, onClose: (code) => (closed = code) },
    )
    await failure(wrong.next())
    assert.strictEqual(closed, 4403)
    assert.deepEqual(server.engine.calls, [])
  })
})

describe("a subscription over server-sent events", () => {
  it("delivers items, and ends its stream when the client goes", async () => {
    server.engine.publish(emitted(1))
    const abort = new AbortController()
    const response = await fetch(server.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ query: MATCHES, variables: { after: "0" } }),
      signal: abort.signal,
    })
    assert.match(response.headers.get("content-type")!, /text\/event-stream/)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ""
    while (!text.includes("match-1")) text += (await reader.read()).value
    assert.include(text, `data: {"data":{"matches":{"position":"p1","match":{"id":"match-1"}}}}`)
    assert.strictEqual(server.engine.running, 1)
    abort.abort()
    await until(() => server.engine.running === 0, "the stream ended")
  })
})

describe("a server that closes", () => {
  it("sends clients away so that they reconnect, and leaves no stream", async () => {
    let code = 0
    const webSocket = subscribe(server.url, MATCHES, {}, { onClose: (closed) => (code = closed) })
    const item = failure(webSocket.next())
    const events = await fetch(server.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ query: MATCHES }),
    })
    const rest = events.text().catch(() => "cut")
    await until(() => server.engine.running === 2, "both streams run")
    const started = Date.now()
    await server.close()
    assert.isBelow(Date.now() - started, 1_500)
    await item
    assert.strictEqual(code, 1001)
    assert.notInclude(await rest, "event: complete")
    await until(() => server.engine.running === 0, "the streams ended")
    assert.isTrue(
      await fetch(server.url).then(
        () => false,
        () => true,
      ),
    )
  })
})
