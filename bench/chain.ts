import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { type Growth, LiveHead } from "./live-head.ts"
import { CHAIN_ID, type ChainSize, makeChain, TOKEN, TRANSFER } from "./made-chain.ts"

/**
 * Serves a made chain over JSON-RPC in a process of its own, which ends with its parent: `fork` it with the size as
 * JSON, it sends its `{ url }`. Logs go out as slices of one buffer, so that the server costs next to nothing. GET
 * answers the counts since the last DELETE. A chain that grows (`live`) mines when `/mine?listeners=N` is asked for, which
 * answers the times; `/hook` is the webhook for its matches.
 */

/** What was asked of the server. */
export interface ChainStats {
  readonly http: number
  /** Calls by method, those of a batch one by one. */
  readonly calls: Readonly<Record<string, number>>
}

interface Call {
  readonly id: unknown
  readonly method: string
  readonly params: ReadonlyArray<any>
}

/** A chain to be served. */
export interface ServeTask extends ChainSize {
  readonly live?: Growth
  /** Every answer is sent so late, in ms; at once unless told. */
  readonly latencyMs?: number
}

const task = JSON.parse(process.argv[2] ?? "{}") as ServeTask
const { latencyMs = 0 } = task
const chain = makeChain(task)
const live = new LiveHead(chain, task.live ?? { from: chain.blocks, everyMs: 0 })
let stats = { http: 0, calls: {} as Record<string, number> }

const numberOf = (tag: unknown): number => {
  if (tag === "earliest") return 0
  return typeof tag === "string" && tag.startsWith("0x") ? Number(tag) : live.number
}

const wants = (wanted: unknown, value: string): boolean => {
  if (wanted === undefined || wanted === null) return true
  return (Array.isArray(wanted) ? wanted : [wanted]).some((one) => String(one).toLowerCase() === value)
}

const logsOf = (filter: any): ReadonlyArray<string | Buffer> => {
  if (!wants(filter.address, TOKEN) || !wants(filter.topics?.[0], TRANSFER)) return ["[]"]
  const one = filter.blockHash === undefined ? undefined : chain.numberOf(filter.blockHash)
  return ["[", chain.logs(one ?? numberOf(filter.fromBlock), one ?? numberOf(filter.toBlock)), "]"]
}

const resultOf = ({ method, params }: Call): ReadonlyArray<string | Buffer> | null => {
  switch (method) {
    case "eth_chainId":
      return [`"0x${CHAIN_ID.toString(16)}"`]
    case "eth_blockNumber":
      return [`"0x${live.number.toString(16)}"`]
    case "eth_getBlockByNumber":
      return [(numberOf(params[0]) <= live.number ? chain.header(numberOf(params[0])) : null) ?? "null"]
    case "eth_getLogs":
      return logsOf(params[0])
    default:
      return null
  }
}

const answer = (call: Call): ReadonlyArray<string | Buffer> => {
  stats.calls[call.method] = (stats.calls[call.method] ?? 0) + 1
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(call.id ?? null)},`
  const result = resultOf(call)
  return result === null
    ? [`${head}"error":{"code":-32601,"message":"the method ${call.method} does not exist"}}`]
    : [`${head}"result":`, ...result, "}"]
}

const answerAll = (body: Call | ReadonlyArray<Call>): ReadonlyArray<string | Buffer> => {
  if (!Array.isArray(body)) return answer(body as Call)
  return ["[", ...body.flatMap((call: Call, i) => (i === 0 ? answer(call) : [",", ...answer(call)])), "]"]
}

const send = (response: ServerResponse, parts: ReadonlyArray<string | Buffer>): void => {
  const buffers = parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part))
  const length = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
  response.writeHead(200, { "content-type": "application/json", "content-length": length })
  response.cork()
  for (const buffer of buffers) response.write(buffer)
  response.uncork()
  response.end()
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const body = await readBody(request)
  const { pathname, searchParams } = new URL(request.url!, url)
  if (pathname === "/hook") {
    response.writeHead(200).end()
    return live.receive(body)
  }
  if (pathname === "/mine") {
    const times = await live.mine(url, Number(searchParams.get("listeners")))
    return send(response, [JSON.stringify(times)])
  }
  if (request.method === "POST") {
    stats.http++
    const parts = answerAll(JSON.parse(body))
    if (latencyMs === 0) return send(response, parts)
    setTimeout(() => send(response, parts), latencyMs)
    return
  }
  if (request.method === "DELETE") stats = { http: 0, calls: {} }
  send(response, [JSON.stringify(stats)])
}

const server = createServer((request, response) => {
  void handle(request, response)
})
server.listen(0, "127.0.0.1")
await once(server, "listening")
server.on("upgrade", (request, socket, head) => live.upgrade(request, socket, head))
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
process.on("disconnect", () => process.exit(0))
process.send?.({ url })
