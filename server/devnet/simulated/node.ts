import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import { answer, type MethodAnswer } from "./methods.ts"
import type { ChainView } from "./view.ts"

/**
 * What a node does in place of its answer: another answer to the call, another HTTP response to the whole request
 * (`drop` closes the connection, `hang` never answers).
 */
export type Fault =
  | MethodAnswer
  | { readonly http: { readonly status: number; readonly body: string; readonly headers?: Record<string, string> } }
  | "drop"
  | "hang"

export type FaultHook = (method: string, params: ReadonlyArray<any>) => Fault | undefined

interface Request {
  readonly id: unknown
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

type Response = Exclude<Fault, MethodAnswer> | { readonly body: string }

/** A request's body, or null if its client went away before it was complete. */
const readBody = async (request: IncomingMessage): Promise<string | null> => {
  const chunks: Array<Buffer> = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** A JSON-RPC node over HTTP that serves a simulated chain; tests change its behaviour while it runs. */
export class SimulatedNode {
  readonly #server: Server
  /** What it serves; a fork in place of the chain lets it stay behind until the chain is put back. */
  chain: ChainView
  /** Blocks by which it is behind its chain. */
  lag = 0
  latencyMs = 0
  blockTimestamps = true
  /** Whether it knows `safe` and `finalized`. */
  tags = true
  /** Whether it takes several calls in one request. */
  batches = true
  fault: FaultHook = () => undefined
  /** Calls by method. */
  readonly counts = new Map<string, number>()
  readonly url: string
  #paused: PromiseWithResolvers<void> | null = null

  private constructor(server: Server, chain: ChainView) {
    this.#server = server
    this.chain = chain
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on("request", (request, response) => void this.#serve(request, response))
  }

  static async start(chain: ChainView, port = 0): Promise<SimulatedNode> {
    const server = createServer()
    server.listen(port, "127.0.0.1")
    await once(server, "listening")
    return new SimulatedNode(server, chain)
  }

  /** Closes the port and every connection. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, "close")
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  /** Takes requests and leaves them without an answer until `resume`. */
  pause(): void {
    this.#paused ??= Promise.withResolvers()
  }

  /** Answers what waits, by what the chain is now, and whatever comes. */
  resume(): void {
    this.#paused?.resolve()
    this.#paused = null
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  count(method: string): number {
    return this.counts.get(method) ?? 0
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that is killed goes away at any moment.
    response.on("error", () => {})
    const text = await readBody(request)
    if (text === null) return
    const body = JSON.parse(text) as Request | ReadonlyArray<Request>
    await this.#paused?.promise
    const answered = this.#respond(body)
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs))
    if (answered === "hang") return
    if (answered === "drop") {
      response.destroy()
      return
    }
    if ("http" in answered) {
      response.writeHead(answered.http.status, answered.http.headers)
      response.end(answered.http.body)
      return
    }
    response.writeHead(200, { "content-type": "application/json" })
    response.end(answered.body)
  }

  #respond(body: Request | ReadonlyArray<Request>): Response {
    const calls = Array.isArray(body) ? (body as ReadonlyArray<Request>) : [body as Request]
    if (Array.isArray(body) && !this.batches)
      return { body: JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } }) }
    const items: Array<unknown> = []
    for (const { id, method, params } of calls) {
      const given = this.#answer(method, params)
      if (typeof given === "string" || "http" in given) return given
      items.push({ jsonrpc: "2.0", id, ...given })
    }
    // the order of a batch's answers is free
    return { body: JSON.stringify(Array.isArray(body) ? items.toReversed() : items[0]) }
  }

  #answer(method: string, params: ReadonlyArray<unknown>): Fault {
    this.counts.set(method, this.count(method) + 1)
    return this.fault(method, params) ?? answer(this, method, params)
  }
}

/** Starts a node that stops with the scope. */
export const simulatedNode = (chain: ChainView): Effect.Effect<SimulatedNode, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => SimulatedNode.start(chain)),
    (node) => Effect.promise(() => node.stop()),
  )
