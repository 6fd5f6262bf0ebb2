import type { IncomingMessage, Server } from "node:http"
import type { Duplex } from "node:stream"
import { type WebSocket, WebSocketServer } from "ws"
import { type NodeFault, type Notification, outletThrough, type RpcCall } from "./fault.ts"
import { type Filter, headOf, logsOf, type MethodAnswer, rawBlock, rawPending, type View } from "./methods.ts"
import type { PendingTransaction } from "./pool.ts"
import type { ChainView, SimulatedBlock } from "./view.ts"

/** What the sockets need of their node. */
export interface SocketNode {
  readonly faults: ReadonlySet<NodeFault>
  /** What the node shows of its chain now. */
  readonly shown: View
  /** Answers a text as over HTTP; `own` answers what only sockets have. */
  readonly answerText: (
    text: string,
    own: (call: RpcCall) => MethodAnswer | undefined,
  ) => Promise<string | "drop" | "hang">
}

interface Subscription {
  readonly id: string
  readonly socket: WebSocket
  readonly kind: "newHeads" | "logs" | "newPendingTransactions"
  readonly options: unknown
}

const KINDS: ReadonlySet<unknown> = new Set(["newHeads", "logs", "newPendingTransactions"])

/** The WebSocket side of a node, on the port of its HTTP server: every method, and subscriptions. */
export class NodeSockets {
  readonly #node: SocketNode
  readonly #server = new WebSocketServer({ noServer: true })
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #hanging = new Set<Duplex>()
  /** Connections that were asked for. */
  tried = 0
  #nextId = 1
  #told: SimulatedBlock

  constructor(http: Server, node: SocketNode) {
    this.#node = node
    this.#told = this.#head()
    http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head))
  }

  /** How many sockets are open. */
  get count(): number {
    return this.#server.clients.size
  }

  /** How many subscriptions are open. */
  get subscriptions(): number {
    return this.#subscriptions.size
  }

  /** The chain has changed: tells what is new, and which logs are gone. */
  chainChanged(): void {
    const head = this.#head()
    const told = this.#told
    if (head === told) return
    this.#told = head
    if (this.#subscriptions.size === 0) return
    const { chain } = this.#node.shown
    const { gone, added } = difference(chain, told, head)
    for (const block of gone) this.#tellLogs(block, true)
    for (const block of added) {
      this.announce(block)
      this.#tellLogs(block, false)
    }
  }

  /** Tells of any block as the newest one. */
  announce(block: SimulatedBlock): void {
    this.#tell("newHeads", () => [rawBlock(block, false)])
  }

  /** Sends a text as it is to whoever has subscribed. */
  send(text: string): void {
    for (const socket of new Set([...this.#subscriptions.values()].map(({ socket }) => socket))) socket.send(text)
  }

  transactionCame(transaction: PendingTransaction): void {
    this.#tell("newPendingTransactions", (full) => [full === true ? rawPending(transaction) : transaction.hash])
  }

  /** Closes every connection, as a node does that goes away; clients may come again. */
  drop(): void {
    for (const socket of this.#server.clients) socket.terminate()
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    for (const socket of this.#hanging) socket.destroy()
    this.drop()
    this.#server.close()
  }

  #head(): SimulatedBlock {
    const view = this.#node.shown
    return view.chain.at(headOf(view))!
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.tried++
    const fault = [...this.#node.faults].find(({ upgrade }) => upgrade !== undefined)
    if (fault !== undefined) {
      socket.on("error", () => {})
      if (fault.upgrade === "refuse") socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n")
      else this.#hanging.add(socket)
      return
    }
    this.#server.handleUpgrade(request, socket, head, (client) => {
      client.on("error", () => {})
      client.on("message", (data) => void this.#answer(client, String(data)))
      client.on("close", () => {
        for (const [id, { socket }] of this.#subscriptions) if (socket === client) this.#subscriptions.delete(id)
      })
    })
  }

  async #answer(socket: WebSocket, text: string): Promise<void> {
    const answered = await this.#node.answerText(text, (call) => this.#subscribe(socket, call))
    if (answered === "drop") socket.terminate()
    else if (answered !== "hang") socket.send(answered)
  }

  #subscribe(socket: WebSocket, { method, params }: RpcCall): MethodAnswer | undefined {
    if (method === "eth_unsubscribe") return { result: this.#subscriptions.delete(String(params[0])) }
    if (method !== "eth_subscribe") return undefined
    const [kind, options] = params
    if (!KINDS.has(kind))
      return { error: { code: -32601, message: `no "${String(kind)}" subscription in eth namespace` } }
    const id = `0x${(this.#nextId++).toString(16)}`
    this.#subscriptions.set(id, { id, socket, kind, options })
    return { result: id }
  }

  #tellLogs(block: SimulatedBlock, removed: boolean): void {
    this.#tell("logs", (filter) =>
      logsOf(this.#node.shown, block, (filter ?? {}) as Filter).map((log) => ({ ...log, removed })),
    )
  }

  #tell(kind: Subscription["kind"], resultsFor: (options: unknown) => ReadonlyArray<unknown>): void {
    for (const { id, socket, kind: wanted, options } of this.#subscriptions.values()) {
      if (wanted !== kind) continue
      const outlet = outletThrough(this.#node.faults, {
        send: (notification, afterMs = 0) => this.#send(socket, notification, afterMs),
        close: () => socket.terminate(),
      })
      for (const result of resultsFor(options))
        outlet.send({ jsonrpc: "2.0", method: "eth_subscription", params: { subscription: id, result } })
    }
  }

  #send(socket: WebSocket, notification: Notification, afterMs: number): void {
    if (afterMs === 0) {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(notification))
      return
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#send(socket, notification, 0)
    }, afterMs)
    this.#timers.add(timer)
  }
}

/** The blocks of the old head that are gone, newest first, and those that came with the new one, oldest first. */
const difference = (chain: ChainView, old: SimulatedBlock, head: SimulatedBlock) => {
  const gone: Array<SimulatedBlock> = []
  const added: Array<SimulatedBlock> = []
  let below: SimulatedBlock | undefined = old
  while (below !== undefined && !chain.isCanonical(below)) {
    gone.push(below)
    // A node that was on a fork of its own invention knows nothing of it any more.
    below = chain.byHash(below.parentHash) ?? chain.at(below.number - 1)
  }
  for (let number = (below?.number ?? -1) + 1; number <= head.number; number++) {
    const block = chain.at(number)
    if (block !== undefined) added.push(block)
  }
  return { gone, added }
}
