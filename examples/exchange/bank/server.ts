import { createServer, type IncomingMessage } from "node:http"
import { json } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import { openBook, type Order } from "./book.ts"

/*
 * The bank: a program of its own, as it would be another company's.
 *
 *   POST /bookings   with an idempotency-key: books once for each key
 *   POST /letters    takes no key: sends a letter each time
 *   GET  /           everything that it did
 */

const { values } = parseArgs({
  options: {
    file: { type: "string", default: "bank.db" },
    port: { type: "string", default: "0" },
    /** Between what it does and its answer, in ms. */
    latency: { type: "string", default: "20" },
  },
})

const bank = openBook(values.file)

const answer = async (request: IncomingMessage): Promise<object | null> => {
  switch (`${request.method} ${request.url}`) {
    case "POST /bookings": {
      const order = (await json(request)) as Order
      const receipt = bank.book(`${request.headers["idempotency-key"]}`, order)
      return receipt === null ? null : { receipt }
    }
    case "POST /letters":
      return { number: bank.send((await json(request)) as Order) }
    case "GET /":
      return bank.all()
    default:
      return null
  }
}

const server = createServer((request, response) => {
  void (async () => {
    const body = await answer(request)
    await setTimeout(Number(values.latency))
    response.writeHead(body === null ? 422 : 200, { "content-type": "application/json" })
    response.end(JSON.stringify(body))
  })().catch(() => response.destroy())
})

// Whoever started it is gone.
process.once("disconnect", () => process.exit())

server.listen(Number(values.port), "127.0.0.1", () => {
  const address = server.address()
  if (typeof address === "object") console.log(`bank: open http://127.0.0.1:${address?.port}`)
})
