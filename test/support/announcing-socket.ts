import { createServer, type Server } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import type { Duplex } from "node:stream"
import { Effect, type Scope } from "effect"
import { type RawData, type WebSocket, WebSocketServer } from "ws"
import type { ChainView, SimulatedBlock } from "../../server/devnet/simulated/view.ts"

interface Call {
  readonly id: unknown
  readonly method: string
}

/** What is announced of a block. */
export type AnnouncedBlock = Pick<SimulatedBlock, "number" | "hash" | "parentHash" | "timestamp" | "logsBloom">

/** How it takes new connections: by the protocol, with HTTP 403, or not at all. */
export type Welcome = "open" | "refuse" | "hang"

/** A node's WebSocket: it announces new blocks to whoever subscribed when a test says so, and misbehaves as told. */
export class SimulatedSocket {
  readonly #server: Server
  readonly #sockets = new WebSocketServer({ noServer: true })
  readonly #subscribed = new Set<WebSocket>()
  readonly #hanging: Array<Duplex> = []
  readonly url: string
  /** What it serves. */
  chain: ChainView
  /** Takes calls and announces nothing. */
  silent = false
  welcome: Welcome = "open"
  /** Answers to calls, in place of its own. */
  fault: (method: string) => { readonly result: unknown } | { readonly error: unknown } | undefined = () => undefined
  /** Connections that were tried. */
  connections = 0

  private constructor(server: Server, chain: ChainView) {
    this.#server = server
    this.chain = chain
    this.url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on("upgrade", (request, socket, head) => {
      this.connections++
      socket.on("error", () => {})
      if (this.welcome === "hang") return void this.#hanging.push(socket)
      if (this.welcome === "refuse") return void socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n")
      this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#serve(opened))
    })
  }

  static async start(chain: ChainView): Promise<SimulatedSocket> {
    const server = createServer()
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    return new SimulatedSocket(server, chain)
  }

  /** Subscriptions that are open. */
  get subscribers(): number {
    return this.#subscribed.size
  }

  /** Tells all subscribers of a block: the chain's head, unless told. */
  announce(block: AnnouncedBlock = this.chain.head): void {
    if (this.silent) return
    const hex = (number: number) => `0x${number.toString(16)}`
    this.send({
      jsonrpc: "2.0",
      method: "eth_subscription",
      params: {
        subscription: "0x1",
        result: {
          number: hex(block.number),
          hash: block.hash,
          parentHash: block.parentHash,
          timestamp: hex(block.timestamp),
          logsBloom: block.logsBloom,
        },
      },
    })
  }

  /** Sends anything to all subscribers: JSON, or a text as it is. */
  send(message: unknown): void {
    const text = typeof message === "string" ? message : JSON.stringify(message)
    for (const socket of this.#subscribed) socket.send(text)
  }

  /** Cuts all connections. */
  drop(): void {
    for (const socket of this.#hanging.splice(0)) socket.destroy()
    for (const socket of this.#sockets.clients) socket.terminate()
    this.#subscribed.clear()
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.drop()
    const closed = once(this.#server, "close")
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  #serve(socket: WebSocket): void {
    this.#sockets.clients.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      this.#sockets.clients.delete(socket)
      this.#subscribed.delete(socket)
    })
    socket.on("message", (data: RawData) => {
      const { id, method } = JSON.parse(String(data)) as Call
      const answer = this.fault(method) ?? { result: this.#answer(method) }
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }))
      if (method === "eth_subscribe" && "result" in answer) this.#subscribed.add(socket)
    })
  }

  #answer(method: string): unknown {
    return method === "eth_chainId" ? `0x${this.chain.chainId.toString(16)}` : "0x1"
  }
}

/** Starts a node's WebSocket that stops with the scope. */
export const simulatedSocket = (chain: ChainView): Effect.Effect<SimulatedSocket, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => SimulatedSocket.start(chain)),
    (socket) => Effect.promise(() => socket.stop()),
  )
