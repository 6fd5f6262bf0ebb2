import { Effect, Metric, Redacted, Schema, type Scope } from "effect"
import type { Egress, OpenSocket } from "../../../../core/plugin/egress.ts"
import { excerpt } from "../../../../core/plugin/secrets-excerpt.ts"
import type { Endpoint } from "../config.ts"
import { readObject } from "../wire.ts"
import { waitAfter } from "./backoff.ts"
import { separateCredentials } from "./credentials.ts"

/** Who listens to a subscription. */
export interface SubscriptionListener<Told> {
  /** What it is told of, in the log: "new blocks". */
  readonly what: string
  /** How that is found out while the connection is lost, in the log. */
  readonly otherwise: string
  /** The parameters of `eth_subscribe`: those that the node takes first of these. */
  readonly subscriptions: ReadonlyArray<ReadonlyArray<unknown>>
  /** A longer message ends the connection. */
  readonly maxBytes: number
  /** So many messages may wait until they are heard; more end the connection. */
  readonly maxWaiting: number
  /** Reads what a notification holds. Throws `MalformedAnswer` for what is something else, which is then passed over. */
  readonly read: (result: unknown) => Told
  readonly hear: (told: Told) => Effect.Effect<void>
  /** A connection is open and subscribed. */
  readonly opened: () => void
  /** It is over, or could not be made. `reason` holds nothing secret. */
  readonly closed: (reason: string) => void
  /** Completes when what the open connection tells was found to be true. */
  readonly proof: Effect.Effect<void>
  /** Completes when the open connection is found to hide what it should tell. */
  readonly silence: Effect.Effect<void>
}

/** The connection is over, or could not be made. `reason` may hold what is secret. */
class SocketLost extends Schema.TaggedError<SocketLost>()("SocketLost", {
  cause: Schema.Literals(["refused", "ended", "silent"]),
  reason: Schema.String,
}) {}

const OPEN_MS = 10_000
const IDLE_MS = 30_000
const MAX_REASON = 400

const losses = Metric.counter("blockwatcher_rpc_socket_losses_total", {
  description: "Connections to ws_url that were lost, by cause: refused, ended, silent",
  incremental: true,
})

const isOpen = Metric.gauge("blockwatcher_rpc_socket_open", {
  description: "1 while ws_url is open, else 0: what it would tell is then found by polling alone",
})

/** What a message holds, or undefined if it is nothing that is waited for. */
const readMessage = <A>(text: string, read: (message: Readonly<Record<string, unknown>>) => A): A | undefined => {
  try {
    return read(readObject(JSON.parse(text), "a message"))
  } catch {
    return undefined // Whatever a node sends here, polling goes on.
  }
}

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

/** Subscribes in the first way that the node takes. */
const subscribe = (socket: OpenSocket, ways: ReadonlyArray<ReadonlyArray<unknown>>, id = 2): ReturnType<typeof ask> =>
  ask(socket, id, "eth_subscribe", ways[0]!).pipe(
    Effect.catchIf(
      ({ _tag }) => _tag === "SocketLost" && ways.length > 1,
      () => subscribe(socket, ways.slice(1), id + 1),
    ),
  )

/** Opens the connection and subscribes, if the node serves the right chain. */
const open = Effect.fnUntraced(function* <Told>(
  egress: Egress["Service"],
  endpoint: Endpoint,
  chainId: number,
  { maxBytes, maxWaiting, subscriptions }: SubscriptionListener<Told>,
): Effect.fn.Return<OpenSocket, SocketLost, Scope.Scope> {
  const opening = Effect.gen(function* () {
    const { url, headers } = separateCredentials(Redacted.value(endpoint.url))
    const socket = yield* egress.openSocket({
      url,
      headers,
      timeoutMs: OPEN_MS,
      maxBytes,
      maxWaiting,
      idleMs: IDLE_MS,
    })
    const served = yield* ask(socket, 1, "eth_chainId", [])
    if (Number(served) !== chainId)
      return yield* new SocketLost({
        cause: "refused",
        reason: `the node serves chain ${Number(served)}, but chain_id is ${chainId}; correct ws_url`,
      })
    yield* subscribe(socket, subscriptions)
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
 * Keeps a WebSocket open that tells `listener` of what it subscribes to, with growing waits between attempts; never ends.
 * A loss and a return are logged once each: it is back when what it tells is true.
 */
export const followSubscription = Effect.fnUntraced(function* <Told>(
  egress: Egress["Service"],
  endpoint: Endpoint,
  chainId: number,
  listener: SubscriptionListener<Told>,
): Effect.fn.Return<never> {
  const { label, secrets } = endpoint
  const { what } = listener
  const attributes = { node: label }
  const show = Metric.withAttributes(isOpen, attributes)
  let isLost = false
  let failures = 0

  const hear = (text: string): Effect.Effect<void> => {
    const told = readMessage(text, ({ method, params }) =>
      method === "eth_subscription" ? listener.read(readObject(params, "the parameters")["result"]) : undefined,
    )
    return told === undefined ? Effect.void : listener.hear(told)
  }

  const noteReturn = Effect.gen(function* () {
    yield* listener.proof
    failures = 0
    if (isLost) yield* Effect.logInfo(`ws_url ${label} tells of ${what} again`)
    isLost = false
  })

  /** Connects, and listens until the connection is lost. */
  const listen = Effect.gen(function* () {
    const socket = yield* open(egress, endpoint, chainId, listener)
    listener.opened()
    yield* Metric.update(show, 1)
    const hearing = Effect.forever(Effect.flatMap(socket.receive, hear)).pipe(
      Effect.mapError(({ reason }) => new SocketLost({ cause: "ended", reason })),
    )
    const silence = Effect.andThen(
      listener.silence,
      Effect.fail(new SocketLost({ cause: "silent", reason: `it is open, but announced none of the last ${what}` })),
    )
    return yield* Effect.raceAllFirst([hearing, silence, Effect.andThen(noteReturn, Effect.never)])
  }).pipe(Effect.scoped, Effect.ensuring(Metric.update(show, 0)))

  for (;;) {
    const { cause, reason } = yield* Effect.flip(listen)
    const shown = excerpt(reason, { secrets, limit: MAX_REASON, keep: "start" })
    listener.closed(`ws_url ${label} is lost: ${shown}`)
    yield* Metric.update(Metric.withAttributes(losses, { ...attributes, cause }), 1)
    if (!isLost) yield* Effect.logWarning(`ws_url ${label} is lost: ${shown}; ${listener.otherwise}`)
    isLost = true
    failures++
    yield* Effect.sleep(waitAfter(failures))
  }
})
