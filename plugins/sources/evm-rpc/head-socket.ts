import { Effect, Metric, Redacted, Schema, type Scope } from "effect"
import type { Egress, OpenSocket } from "../../../core/plugin/egress.ts"
import { excerpt } from "../../../core/plugin/secrets-excerpt.ts"
import type { Endpoint } from "./config.ts"
import type { HeadHints, ToldHead } from "./head-hints.ts"
import { waitAfter } from "./rpc/backoff.ts"
import { separateCredentials } from "./rpc/credentials.ts"
import { readHash, readObject, readQuantity } from "./wire.ts"

/** The connection that announces new blocks is over, or could not be made. `reason` holds nothing secret. */
class SocketLost extends Schema.TaggedError<SocketLost>()("SocketLost", {
  cause: Schema.Literals(["refused", "ended", "silent"]),
  reason: Schema.String,
}) {}

const OPEN_MS = 10_000
const IDLE_MS = 30_000
/** A header is a few kilobytes; some chains put much into `extraData`. */
const MAX_BYTES = 256 * 1024
const MAX_REASON = 400

const losses = Metric.counter("blockwatcher_rpc_socket_losses_total", {
  description: "WebSocket connections for new blocks that were lost, by cause: refused, ended, silent",
  incremental: true,
})

const isOpen = Metric.gauge("blockwatcher_rpc_socket_open", {
  description: "1 while the WebSocket for new blocks is open, else 0: blocks are then found by polling alone",
})

/** What a message holds, or undefined if it is nothing that is waited for. */
const readMessage = <A>(text: string, read: (message: Readonly<Record<string, unknown>>) => A): A | undefined => {
  try {
    return read(readObject(JSON.parse(text), "a message"))
  } catch {
    return undefined // Whatever a node sends here, polling goes on.
  }
}

/** The block that a notification announces. */
const readAnnounced = (text: string): ToldHead | undefined =>
  readMessage(text, ({ method, params }) => {
    if (method !== "eth_subscription") return undefined
    const head = readObject(readObject(params, "the parameters")["result"], "a block")
    return {
      number: readQuantity(head["number"], "the number of a block"),
      hash: readHash(head["hash"], "the hash of a block"),
    }
  })

interface Answer {
  readonly result: unknown
  readonly error: unknown
}

/** Sends a call, and waits for its answer among whatever else comes. */
const ask = Effect.fnUntraced(function* (
  socket: OpenSocket,
  id: number,
  method: string,
  params: ReadonlyArray<unknown>,
) {
  yield* socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
  for (;;) {
    const answer = readMessage(yield* socket.receive, (message): Answer | undefined =>
      message["id"] === id ? { result: message["result"], error: message["error"] } : undefined,
    )
    if (answer === undefined) continue
    if (answer.result !== undefined && answer.result !== null) return answer.result
    return yield* new SocketLost({
      cause: "refused",
      reason: `${method}: ${JSON.stringify(answer.error ?? "an answer without a result")}`,
    })
  }
})

/** Opens the connection and subscribes, if the node serves the right chain. */
const subscribe = Effect.fnUntraced(function* (
  egress: Egress["Service"],
  endpoint: Endpoint,
  chainId: number,
): Effect.fn.Return<OpenSocket, SocketLost, Scope.Scope> {
  const opening = Effect.gen(function* () {
    const { url, headers } = separateCredentials(Redacted.value(endpoint.url))
    const socket = yield* egress.openSocket({
      url,
      headers,
      timeoutMs: OPEN_MS,
      maxBytes: MAX_BYTES,
      idleMs: IDLE_MS,
    })
    const served = yield* ask(socket, 1, "eth_chainId", [])
    if (Number(served) !== chainId)
      return yield* new SocketLost({
        cause: "refused",
        reason: `the node serves chain ${Number(served)}, but chain_id is ${chainId}; correct ws_url`,
      })
    yield* ask(socket, 2, "eth_subscribe", ["newHeads"])
    return socket
  })
  return yield* opening.pipe(
    Effect.catchTag("HttpFailure", ({ reason }) => Effect.fail(new SocketLost({ cause: "refused", reason }))),
    Effect.timeoutOrElse({
      duration: 2 * OPEN_MS,
      orElse: () => Effect.fail(new SocketLost({ cause: "refused", reason: "the node does not answer" })),
    }),
  )
})

/**
 * Keeps a WebSocket open that announces new blocks to `hints`, with growing waits between attempts; never ends. A loss
 * and a return are logged once each: it is back when what it announces is true.
 */
export const followSocket = Effect.fnUntraced(function* (
  egress: Egress["Service"],
  endpoint: Endpoint,
  chainId: number,
  hints: HeadHints,
): Effect.fn.Return<never> {
  const { label, secrets } = endpoint
  const attributes = { node: label }
  const show = Metric.withAttributes(isOpen, attributes)
  let isLost = false
  let failures = 0

  const hear = Effect.fnUntraced(function* (text: string) {
    const head = readAnnounced(text)
    if (head !== undefined) hints.announce(head)
    if (!hints.isProven) return
    failures = 0
    if (!isLost) return
    isLost = false
    yield* Effect.logInfo(`ws_url ${label} tells of new blocks again`)
  })

  /** Connects, and listens until the connection is lost. */
  const listen = Effect.gen(function* () {
    const socket = yield* subscribe(egress, endpoint, chainId)
    hints.opened()
    yield* Metric.update(show, 1)
    const hearing = Effect.forever(Effect.flatMap(socket.receive, hear)).pipe(
      Effect.mapError(({ reason }) => new SocketLost({ cause: "ended", reason })),
    )
    const silence = Effect.andThen(
      hints.silence,
      Effect.fail(new SocketLost({ cause: "silent", reason: "it is open, but announced none of the last new blocks" })),
    )
    return yield* Effect.raceFirst(hearing, silence)
  }).pipe(
    Effect.scoped,
    Effect.ensuring(
      Effect.andThen(
        Effect.sync(() => hints.closed()),
        Metric.update(show, 0),
      ),
    ),
  )

  for (;;) {
    const { cause, reason } = yield* Effect.flip(listen)
    yield* Metric.update(Metric.withAttributes(losses, { ...attributes, cause }), 1)
    if (!isLost) {
      isLost = true
      const shown = excerpt(reason, { secrets, limit: MAX_REASON, keep: "start" })
      yield* Effect.logWarning(`ws_url ${label} is lost: ${shown}; new blocks are found by polling until it is back`)
    }
    failures++
    yield* Effect.sleep(waitAfter(failures))
  }
})
