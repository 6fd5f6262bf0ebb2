import { Agent, request } from "node:http"
import { contend, startClock } from "../contender.ts"
import { TRANSFER, TOKEN, type ChainSize } from "../made-chain.ts"

/**
 * The floor: the whole chain's logs over one keep-alive connection, range after range. The bodies are collected and
 * dropped, or parsed by one `JSON.parse` each and dropped. Its code is fixed, since ratios are made with it.
 */
export interface SocketTask extends ChainSize {
  readonly url: string
  readonly range: number
  readonly parse: boolean
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

const post = (url: string, body: string): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const sent = request(
      url,
      { agent, method: "POST", headers: { "content-type": "application/json" } },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("end", () => resolve(Buffer.concat(chunks)))
        response.on("error", reject)
      },
    )
    sent.on("error", reject)
    sent.end(body)
  })

const getLogs = (from: number, to: number): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: from,
    method: "eth_getLogs",
    params: [
      { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}`, address: [TOKEN], topics: [[TRANSFER]] },
    ],
  })

await contend(async ({ url, blocks, logsPerBlock, range, parse }: SocketTask) => {
  const read = startClock()
  let parsed = 0
  for (let from = 1; from <= blocks; from += range) {
    const body = await post(url, getLogs(from, Math.min(blocks, from + range - 1)))
    if (parse) parsed += JSON.parse(body.toString("utf8")).result.length
  }
  const measured = read(blocks * logsPerBlock)
  if (parse && parsed !== measured.logs) throw new Error(`${parsed} logs came where ${measured.logs} were asked for`)
  agent.destroy()
  return measured
})
