import { Clock, Effect, Redacted, Result } from "effect"
import type { Egress, HttpResponse } from "../../../../core/plugin/egress.ts"
import type { Endpoint } from "../config.ts"
import { MalformedAnswer } from "../wire.ts"
import { Allowance } from "./allowance.ts"
import { classify, RpcFailure } from "./errors.ts"
import { separateCredentials } from "./credentials.ts"
import { parseBody, releaseBody } from "./body.ts"

export interface Call {
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

export type Answer = Result.Result<unknown, RpcFailure>

/** Answers that came and are parsed when this is run; fails if no answer came at all. */
export type Unread = Effect.Effect<ReadonlyArray<Answer>, RpcFailure>

/** One node. Every call is tried once. */
export interface RpcClient {
  readonly label: string
  readonly call: (call: Call) => Effect.Effect<unknown, RpcFailure>
  /** Sends the calls together; each stands for itself, in the order of `calls`. Fails if no answer came at all. */
  readonly batch: (calls: ReadonlyArray<Call>) => Unread
  /** The same for a few calls, whose answers stay bytes until the effect that comes back is run. */
  readonly ask: (calls: ReadonlyArray<Call>) => Effect.Effect<Unread>
  /** A failure of this node, with its name before the reason. */
  readonly failure: (kind: RpcFailure["kind"], reason: string) => RpcFailure
  /** Reads an answer with a function that throws `MalformedAnswer`. */
  readonly read: <A>(read: () => A) => Effect.Effect<A, RpcFailure>
}

const TIMEOUT_MS = 30_000
const MAX_BYTES = 256 * 2 ** 20
const MAX_BATCH = 100
const MAX_REASON = 400
const SINGLE_CALLS_AT_ONCE = 4

const retryAfter = (response: HttpResponse, now: number): number | undefined => {
  const text = response.headers["retry-after"]
  if (text === undefined) return undefined
  const ms = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

const parse = (body: Uint8Array): unknown => parseBody(Buffer.from(body.buffer, body.byteOffset, body.byteLength))

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Spaces requests evenly; null if they need no spacing. */
export const makePace = (perSecond: number | undefined): ((calls: number) => Effect.Effect<void>) => {
  if (perSecond === undefined) return () => Effect.void
  let free = 0
  return Effect.fnUntraced(function* (calls: number) {
    const now = yield* Clock.currentTimeMillis
    const turn = Math.max(now, free)
    free = turn + (1000 / perSecond) * calls
    if (turn > now) yield* Effect.sleep(turn - now)
  })
}

/** Makes the client of one endpoint. */
export const makeClient = (
  egress: Egress["Service"],
  endpoint: Endpoint,
  pace: (calls: number) => Effect.Effect<void>,
): RpcClient => {
  const { label } = endpoint
  const { url, headers } = separateCredentials(Redacted.value(endpoint.url))
  let nextId = 1
  let batches = true

  const clean = (text: string): string => {
    let out = text
    for (const secret of endpoint.secrets) out = out.replaceAll(secret, "***")
    return out.length > MAX_REASON ? `${out.slice(0, MAX_REASON)}…` : out
  }

  const failure = (kind: RpcFailure["kind"], reason: string) =>
    new RpcFailure({ kind, reason: `${label}: ${clean(reason)}` })

  const send = Effect.fnUntraced(function* (calls: number, body: unknown) {
    yield* pace(calls)
    const allowance = yield* Allowance
    if (allowance !== null) allowance.requests++
    const left = allowance === null ? MAX_BYTES : Math.max(1, allowance.bytes - allowance.received)
    const response = yield* egress
      .request({
        method: "POST",
        url,
        headers: { ...headers, "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify(body),
        timeoutMs: TIMEOUT_MS,
        maxBytes: Math.min(MAX_BYTES, left),
        overflow: "fail",
      })
      .pipe(
        Effect.mapError(({ kind, reason }) => {
          if (kind !== "too-large") return failure("unreachable", reason)
          return failure(left < MAX_BYTES ? "allowance" : "too-many", reason)
        }),
      )
    if (allowance !== null) allowance.received += response.body.length
    return response
  })

  const answerError = (response: HttpResponse, error: unknown, method: string, now: number): RpcFailure => {
    const { code, message, data } = isObject(error) ? error : { code: null, message: error, data: undefined }
    const words = [message, data].filter((part) => typeof part === "string" && part !== "").join(": ")
    const text = words === "" ? (JSON.stringify(error) ?? "an error without a message") : words
    const found = classify({
      status: response.status,
      code: typeof code === "number" ? code : null,
      message: text,
    })
    const wait = retryAfter(response, now)
    return new RpcFailure({
      kind: found.kind,
      reason: `${label}: ${method}: ${clean(text)}${typeof code === "number" ? ` (code ${code})` : ""}`,
      ...(found.hint === undefined ? {} : { hint: found.hint }),
      ...(found.lowest === undefined ? {} : { lowest: found.lowest }),
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    })
  }

  /** What HTTP alone says when the body is no JSON-RPC answer. */
  const transportError = (response: HttpResponse, method: string, now: number): RpcFailure => {
    const { status } = response
    const start = new TextDecoder().decode(response.body.subarray(0, 200)).trim()
    if (status >= 200 && status < 300)
      return failure(
        "malformed",
        `${method}: the answer is no JSON-RPC answer: ${start === "" ? "it is empty" : start}`,
      )
    const found = classify({ status, code: null, message: start })
    const kind = found.kind === "refused" ? "unreachable" : found.kind
    const wait = retryAfter(response, now)
    return new RpcFailure({
      kind,
      reason: `${label}: ${method}: HTTP ${status}${start === "" ? "" : `: ${clean(start)}`}`,
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    })
  }

  const readAnswer = (response: HttpResponse, item: unknown, id: number, method: string, now: number): Answer => {
    if (!isObject(item)) return Result.fail(transportError(response, method, now))
    const hasError = item["error"] !== undefined && item["error"] !== null
    const hasResult = item["result"] !== undefined
    if (hasError && (item["id"] === id || item["id"] === null || item["id"] === undefined))
      return Result.fail(answerError(response, item["error"], method, now))
    if (item["id"] !== id)
      return Result.fail(
        failure("malformed", `${method}: the answer has the id ${JSON.stringify(item["id"])}, not ${id}`),
      )
    if (!hasResult) return Result.fail(failure("malformed", `${method}: the answer has neither a result nor an error`))
    if (response.status < 200 || response.status >= 300) return Result.fail(transportError(response, method, now))
    return Result.succeed(item["result"])
  }

  /** Sends a call; its answer stays bytes until the effect that comes back reads it. */
  const askOne = Effect.fnUntraced(function* ({ method, params }: Call) {
    const id = nextId++
    const sent = yield* Effect.result(send(1, { jsonrpc: "2.0", id, method, params }))
    return Effect.map(Clock.currentTimeMillis, (now) =>
      Result.flatMap(sent, (response) => readAnswer(response, parse(response.body), id, method, now)),
    )
  })

  const call = (one: Call) => Effect.flatMap(Effect.flatten(askOne(one)), Effect.fromResult)

  const askSingly = (calls: ReadonlyArray<Call>): Effect.Effect<Unread> =>
    Effect.map(Effect.forEach(calls, askOne, { concurrency: SINGLE_CALLS_AT_ONCE }), (unread) => Effect.all(unread))

  const askTogether = Effect.fnUntraced(function* (calls: ReadonlyArray<Call>): Effect.fn.Return<Unread> {
    const first = nextId
    nextId += calls.length
    const sent = yield* Effect.result(
      send(
        calls.length,
        calls.map(({ method, params }, i) => ({ jsonrpc: "2.0", id: first + i, method, params })),
      ),
    )
    return Effect.flatMap(Effect.fromResult(sent), (response) => readTogether(calls, first, response))
  })

  const readTogether = Effect.fnUntraced(function* (
    calls: ReadonlyArray<Call>,
    first: number,
    response: HttpResponse,
  ): Effect.fn.Return<ReadonlyArray<Answer>, RpcFailure> {
    const now = yield* Clock.currentTimeMillis
    const body = parse(response.body)
    const method = calls[0]!.method
    if (!Array.isArray(body)) {
      if (!isObject(body) || body["error"] === undefined) return yield* transportError(response, method, now)
      const error = answerError(response, body["error"], method, now)
      if (error.kind !== "refused" && error.kind !== "unsupported") return yield* error
      batches = false // one error for a whole batch: the node may not take batches at all
      return yield* Effect.flatten(askSingly(calls))
    }
    const byId = new Map<unknown, unknown>()
    for (const item of body) if (isObject(item)) byId.set(item["id"], item)
    const answers = calls.map(({ method }, i): Answer => {
      const item = byId.get(first + i)
      return item === undefined
        ? Result.fail(failure("malformed", `${method}: the answer to a batch lacks an item`))
        : readAnswer(response, item, first + i, method, now)
    })
    releaseBody(response.body)
    return answers
  })

  /** What is too much for one answer is asked for in halves, down to single calls. */
  const ask = (calls: ReadonlyArray<Call>): Effect.Effect<Unread> =>
    Effect.suspend(() => {
      if (calls.length === 1 || !batches) return askSingly(calls)
      const half = calls.length >> 1
      const inHalves = () =>
        Effect.zipWith(Effect.flatten(ask(calls.slice(0, half))), Effect.flatten(ask(calls.slice(half))), (a, b) => [
          ...a,
          ...b,
        ])
      return Effect.map(
        askTogether(calls),
        Effect.catchIf(({ kind }) => kind === "too-many" || kind === "range", inHalves),
      )
    })

  const batch = Effect.fnUntraced(function* (calls: ReadonlyArray<Call>) {
    const answers: Array<Answer> = []
    for (let i = 0; i < calls.length; i += MAX_BATCH)
      answers.push(...(yield* yield* ask(calls.slice(i, i + MAX_BATCH))))
    return answers
  })

  const read = <A>(read: () => A): Effect.Effect<A, RpcFailure> =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(read())
      } catch (error) {
        if (error instanceof MalformedAnswer) return Effect.fail(failure("malformed", error.message))
        throw error
      }
    })

  return { label, call, batch, ask, failure, read }
}
