import { Agent, type buildConnector, type Dispatcher } from "undici"
import { Effect } from "effect"
import { failureOf } from "./egress-dial.ts"
import { HttpFailure, type HttpRequest, type HttpResponse } from "./egress-http.ts"

const CONNECTIONS_PER_ORIGIN = 64

const flatten = (headers: Readonly<Record<string, string | Array<string> | undefined>>) => {
  const flat: Record<string, string> = {}
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) flat[name] = typeof value === "string" ? value : value.join(", ")
  }
  return flat
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The user and password of a URL as a header; a header that the request carries itself wins. */
const withCredentials = (url: URL, headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  url.username === "" && url.password === ""
    ? headers
    : {
        authorization: `Basic ${Buffer.from(`${decode(url.username)}:${decode(url.password)}`).toString("base64")}`,
        ...headers,
      }

/** One exchange. It settles once; whatever undici reports afterwards is ignored. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest
  readonly #resume: (effect: Effect.Effect<HttpResponse, HttpFailure>) => void
  readonly #chunks: Array<Buffer> = []
  readonly #timer: NodeJS.Timeout
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  #bytes = 0
  #status = 0
  #headers: Readonly<Record<string, string>> = {}

  constructor(request: HttpRequest, resume: (effect: Effect.Effect<HttpResponse, HttpFailure>) => void) {
    this.#request = request
    this.#resume = resume
    this.#timer = setTimeout(() => {
      this.#fail("timeout", `no complete response within ${request.timeoutMs} ms`)
    }, request.timeoutMs)
  }

  /** Ends the exchange without a result; one that waits for its connection is never sent. */
  abort() {
    this.#settle(undefined)
    this.#controller?.abort(new Error("aborted"))
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    this.#controller = controller
    if (this.#settled) controller.abort(new Error("aborted"))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | Array<string> | undefined>>,
  ) {
    if (status < 200) return
    this.#status = status
    this.#headers = flatten(headers)
    if (this.#request.overflow === "fail" && Number(this.#headers["content-length"]) > this.#request.maxBytes) {
      this.#tooLarge()
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer) {
    if (this.#settled) return
    const room = this.#request.maxBytes - this.#bytes
    this.#bytes += chunk.length
    if (chunk.length <= room) this.#chunks.push(chunk)
    else if (this.#request.overflow === "fail") return this.#tooLarge()
    else this.#chunks.push(chunk.subarray(0, room))
    if (this.#request.overflow === "truncate" && chunk.length >= room) {
      this.#succeed()
      this.#controller?.abort(new Error("truncated"))
    }
  }

  onResponseEnd() {
    this.#succeed()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error) {
    this.#settle(Effect.fail(failureOf(this.#request.url.origin, error)))
  }

  #succeed() {
    const chunks = this.#chunks
    const body = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
    this.#settle(Effect.succeed({ status: this.#status, headers: this.#headers, body }))
  }

  #tooLarge() {
    this.#fail("too-large", `the response is larger than ${this.#request.maxBytes} bytes`)
  }

  #fail(kind: HttpFailure["kind"], what: string) {
    this.#settle(Effect.fail(new HttpFailure({ kind, reason: `${this.#request.url.origin}: ${what}` })))
    this.#controller?.abort(new Error(kind))
  }

  #settle(effect: Effect.Effect<HttpResponse, HttpFailure> | undefined) {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    // Resumed at once, the fiber would send its next request while this connection still counts as busy.
    if (effect !== undefined) queueMicrotask(() => this.#resume(effect))
  }
}

/**
 * Requests over one undici agent: HTTP/1.1, keep-alive, one request at a time on each of up to 64 connections per
 * origin. The connections end with the scope.
 */
export const undiciTransport = (connect: buildConnector.connector) =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new Agent({
          allowH2: false,
          connections: CONNECTIONS_PER_ORIGIN,
          pipelining: 1,
          headersTimeout: 0,
          bodyTimeout: 0,
          connect,
        }),
    ),
    (agent) => Effect.promise(() => agent.destroy()),
  ).pipe(
    Effect.map(
      (agent) =>
        (request: HttpRequest): Effect.Effect<HttpResponse, HttpFailure> =>
          Effect.callback((resume) => {
            const exchange = new Exchange(request, resume)
            const { url } = request
            agent.dispatch(
              {
                origin: url.origin,
                path: url.pathname + url.search,
                method: request.method,
                headers: withCredentials(url, request.headers),
                body: request.body ?? null,
              },
              exchange,
            )
            return Effect.sync(() => exchange.abort())
          }),
    ),
  )
