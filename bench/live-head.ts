import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { WebSocket, WebSocketServer } from "ws"
import { CHAIN_ID, type MadeChain } from "./made-chain.ts"

/** A chain that grows: it begins at the block `from` and has all its blocks in the end. */
export interface Growth {
  readonly from: number
  /** Time between blocks. */
  readonly everyMs: number
}

/** Times of the blocks that were mined, in ms behind the moment of mining. */
export interface LiveTimes {
  /** When a subscriber in the node's own process heard of each block. */
  readonly notified: ReadonlyArray<number>
  /** When each block's match was at the webhook. */
  readonly delivered: ReadonlyArray<number>
  readonly tookMs: number
}

/** Ends the wait for deliveries that do not come. */
const LONGEST_WAIT_MS = 30_000

/** The head of a chain that grows, its WebSocket, and the webhook at which matches arrive: all on one clock. */
export class LiveHead {
  readonly #chain: MadeChain
  readonly #growth: Growth
  readonly #sockets = new WebSocketServer({ noServer: true })
  readonly #minedAt = new Map<number, number>()
  readonly #notified = new Map<number, number>()
  readonly #delivered = new Map<number, number>()
  #arrived = Promise.withResolvers<void>()
  number: number

  constructor(chain: MadeChain, growth: Growth) {
    this.#chain = chain
    this.#growth = growth
    this.number = growth.from
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#sockets.handleUpgrade(request, socket, head, (opened) => {
      this.#sockets.clients.add(opened)
      opened.on("close", () => this.#sockets.clients.delete(opened))
      opened.on("message", (data) => {
        const { id, method } = JSON.parse(String(data)) as { readonly id: unknown; readonly method: string }
        const result = method === "eth_chainId" ? `0x${CHAIN_ID.toString(16)}` : "0x1"
        opened.send(JSON.stringify({ jsonrpc: "2.0", id, result }))
      })
    })
  }

  /** A webhook's body arrived. */
  receive(body: string): void {
    const { event } = JSON.parse(body) as { readonly event: { readonly block: { readonly number: number } } }
    const { number } = event.block
    if (!this.#delivered.has(number)) this.#delivered.set(number, performance.now())
    if (this.#delivered.size === this.#chain.blocks - this.#growth.from) this.#arrived.resolve()
  }

  /** Mines the rest of the chain, once `listeners` are connected, and waits for its deliveries. */
  async mine(url: string, listeners: number): Promise<LiveTimes> {
    const own = new WebSocket(url.replace("http:", "ws:"))
    own.on("message", (data) => {
      const { number } = JSON.parse(String(data)).params.result as { readonly number: string }
      this.#notified.set(Number(number), performance.now())
    })
    while (this.#sockets.clients.size < listeners + 1) await this.#pause(10)
    this.#delivered.clear()
    const began = performance.now()
    for (let due = began; this.number < this.#chain.blocks;) {
      due += this.#growth.everyMs
      await this.#pause(Math.max(0, due - performance.now()))
      this.number++
      this.#minedAt.set(this.number, performance.now())
      this.#announce()
    }
    await Promise.race([this.#arrived.promise, this.#pause(LONGEST_WAIT_MS)])
    own.terminate()
    const behind = (times: ReadonlyMap<number, number>) =>
      [...this.#minedAt].map(([number, at]) => (times.get(number) ?? Number.POSITIVE_INFINITY) - at)
    return {
      notified: behind(this.#notified),
      delivered: behind(this.#delivered),
      tookMs: performance.now() - began,
    }
  }

  #announce(): void {
    const result = JSON.parse(this.#chain.header(this.number)!) as unknown
    const message = JSON.stringify({
      jsonrpc: "2.0",
      method: "eth_subscription",
      params: { subscription: "0x1", result },
    })
    for (const socket of this.#sockets.clients) socket.send(message)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }
}
