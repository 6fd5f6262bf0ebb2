import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import { answerThrough, type Item, type NodeFault, type Refusal, type RpcCall, viewThrough } from "./fault.ts"
import { answer, type MethodAnswer, type View } from "./methods.ts"
import { PendingFilters } from "./pending-filters.ts"
import { NodeSockets } from "./sockets.ts"
import type { ChainView } from "./view.ts"

/** What a node does in place of its answer: another answer to the call, or something else with the whole request. */
export type Fault = MethodAnswer | Refusal

export type FaultHook = (method: string, params: ReadonlyArray<any>) => Fault | undefined

interface Request extends RpcCall {
  readonly id: unknown
}

type Response = Refusal | { readonly body: string }

/** Answers what the chain does not know; undefined for the rest. */
type Own = (call: RpcCall) => MethodAnswer | undefined

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

/** A JSON-RPC node over HTTP and WebSocket that serves a simulated chain; its behaviour is changed while it runs. */
export class SimulatedNode {
  readonly #server: Server
  readonly #filters: PendingFilters
  #chain: ChainView
  #unwatch: () => void = () => {}
  readonly #unwatchPool: () => void
  /** Blocks by which it is behind its chain. */
  lag = 0
  latencyMs = 0
  blockTimestamps = true
  /** Whether it knows `safe` and `finalized`. */
  tags = true
  /** Whether it takes several calls in one request. */
  batches = true
  /** Decides about one call after the other, before `faults`. */
  fault: FaultHook = () => undefined
  /** What is wrong with it now; see `misbehave`. */
  readonly faults = new Set<NodeFault>()
  readonly sockets: NodeSockets
  /** Calls by method. */
  readonly counts = new Map<string, number>()
  /** HTTP requests: those of a batch are one. */
  requests = 0
  readonly url: string
  #paused: PromiseWithResolvers<void> | null = null

  private constructor(server: Server, chain: ChainView) {
    this.#server = server
    this.#chain = chain
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.#filters = new PendingFilters(chain.pool)
    const shown = () => this.shown
    const answerText = this.#answerText.bind(this)
    this.sockets = new NodeSockets(server, {
      faults: this.faults,
      get shown() {
        return shown()
      },
      answerText,
    })
    this.#unwatchPool = chain.pool.watch((transaction) => this.sockets.transactionCame(transaction))
    this.chain = chain
    server.on("request", (request, response) => void this.#serve(request, response))
  }

  static async start(chain: ChainView, port = 0): Promise<SimulatedNode> {
    const server = createServer()
    server.listen(port, "127.0.0.1")
    await once(server, "listening")
    return new SimulatedNode(server, chain)
  }

  /** What it serves; a fork in place of the chain lets it stay behind until the chain is put back. */
  get chain(): ChainView {
    return this.#chain
  }

  set chain(chain: ChainView) {
    this.#unwatch()
    this.#chain = chain
    this.#unwatch = chain.watch(() => this.sockets.chainChanged())
  }

  /** Begins to fail or lie, by what the chain is now; what is answered ends it. */
  misbehave(...faults: ReadonlyArray<NodeFault>): () => void {
    for (const fault of faults) this.faults.add(fault)
    // What depends on where the chain was when it began is decided here.
    void this.shown
    return () => {
      for (const fault of faults) this.faults.delete(fault)
    }
  }

  /** What it shows of its chain, faults and all. */
  get shown(): View {
    return viewThrough(this.faults, this)
  }

  /** Closes the port and every connection. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, "close")
    this.#unwatch()
    this.#unwatchPool()
    this.#filters.close()
    this.sockets.close()
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

  /** Forgets every filter, as a node does that starts anew. */
  forgetFilters(): void {
    this.#filters.clear()
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  get wsUrl(): string {
    return this.url.replace("http", "ws")
  }

  count(method: string): number {
    return this.counts.get(method) ?? 0
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that is killed goes away at any moment.
    response.on("error", () => {})
    const text = await readBody(request)
    if (text === null) return
    this.requests++
    const answered = await this.#respondInTime(text, () => undefined)
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

  /** What a socket is answered: there is no HTTP around it, so what only HTTP can say is a closed connection. */
  async #answerText(text: string, own: Own): Promise<string | "drop" | "hang"> {
    const answered = await this.#respondInTime(text, own)
    if (typeof answered === "string") return answered
    return "http" in answered ? "drop" : answered.body
  }

  async #respondInTime(text: string, own: Own): Promise<Response> {
    const body = JSON.parse(text) as Request | ReadonlyArray<Request>
    await this.#paused?.promise
    const answered = this.#respond(body, own)
    const delayMs = [...this.faults].reduce((sum, { delayMs = 0 }) => sum + delayMs, this.latencyMs)
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
    return answered
  }

  #respond(body: Request | ReadonlyArray<Request>, own: Own): Response {
    const calls = Array.isArray(body) ? (body as ReadonlyArray<Request>) : [body as Request]
    if (Array.isArray(body) && !this.batches)
      return { body: JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } }) }
    const view = this.shown
    const items: Array<Item> = []
    for (const { id, method, params } of calls) {
      const given = this.#answer({ method, params }, view, own)
      if (typeof given === "string" || "http" in given) return given
      items.push({ jsonrpc: "2.0", id, ...given })
    }
    let written: ReadonlyArray<unknown> = items
    for (const { items: write } of this.faults) if (write !== undefined) written = write(written as ReadonlyArray<Item>)
    // the order of a batch's answers is free
    const text = JSON.stringify(Array.isArray(body) ? written.toReversed() : written[0])
    for (const { respond } of this.faults) {
      const refusal = respond?.(calls, text)
      if (refusal !== undefined) return refusal
    }
    return { body: text }
  }

  #answer(call: RpcCall, view: View, own: Own): Fault {
    const { method, params } = call
    this.counts.set(method, this.count(method) + 1)
    const given = this.fault(method, params)
    if (given !== undefined) return given
    return answerThrough(
      this.faults,
      call,
      view,
      () => own(call) ?? this.#filters.answer(method, params) ?? answer(view, method, params),
    )
  }
}

/** Starts a node that stops with the scope. */
export const simulatedNode = (chain: ChainView): Effect.Effect<SimulatedNode, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => SimulatedNode.start(chain)),
    (node) => Effect.promise(() => node.stop()),
  )
