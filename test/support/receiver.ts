import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** A request as it arrived; `order` counts from 0 over the receiver's life. */
export interface Arrived {
  readonly order: number
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The port that the client sent it from: the same for requests of one connection. */
  readonly clientPort: number
}

/** A request and how it was answered. */
export interface Received extends Arrived {
  readonly answer: Answer
}

type Headers = Readonly<Record<string, string>>

/** How a request is answered. */
export type Answer =
  /** A complete answer, at once or after so many ms. */
  | {
      readonly kind: "respond"
      readonly status: number
      readonly headers?: Headers
      readonly body?: string | Buffer
      readonly afterMs?: number
    }
  /** Nothing, ever. */
  | { readonly kind: "hang" }
  /** The connection is reset before an answer. */
  | { readonly kind: "reset" }
  /** Headers and the beginning of a body, then the connection is closed. */
  | { readonly kind: "cut"; readonly status: number }
  /** Headers, then one byte each few ms without an end. */
  | { readonly kind: "trickle"; readonly status: number }
  /** Headers, then bytes as fast as they are taken, without an end. */
  | { readonly kind: "endless"; readonly status: number }
  /** These bytes, whatever they are, then the connection is closed. */
  | { readonly kind: "raw"; readonly bytes: string }

export const respond = (
  status: number,
  options: { headers?: Headers; body?: string | Buffer; afterMs?: number } = {},
): Answer => ({
  kind: "respond",
  status,
  ...options,
})

/** An HTTP receiver on 127.0.0.1 that records what it gets. */
export interface Receiver {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly origin: string
  readonly port: number
  /** Everything that arrived complete, in the order of arrival. */
  readonly requests: ReadonlyArray<Received>
  /** Queues answers for the next requests; requests beyond get the default answer. */
  readonly next: (...answers: ReadonlyArray<Answer>) => void
  /** Replaces the default answer, 200 at first. */
  readonly always: (answer: Answer | ((request: Arrived) => Answer)) => void
  /** Waits until `predicate` holds for what arrived; fails with what did arrive when it does not in `withinMs`. */
  readonly waitUntil: (
    predicate: (requests: ReadonlyArray<Received>) => boolean,
    withinMs?: number,
  ) => Effect.Effect<ReadonlyArray<Received>, Error>
  /** Waits until a client has closed the connection of an unfinished answer. */
  readonly waitUntilAbandoned: (count: number, withinMs?: number) => Effect.Effect<void, Error>
}

const accept = (): Answer => respond(200)

const TRICKLE_MS = 5
const CHUNK = Buffer.alloc(16_384, "x")

const flatten = (headers: IncomingMessage["headers"]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ""].flat().join(", ")]))

const give = (answer: Answer, response: ServerResponse, socket: Socket) => {
  switch (answer.kind) {
    case "respond": {
      const end = () => response.writeHead(answer.status, answer.headers).end(answer.body)
      if (answer.afterMs === undefined) return end()
      const timer = setTimeout(end, answer.afterMs)
      return response.on("close", () => clearTimeout(timer))
    }
    case "hang":
      return
    case "reset":
      return socket.resetAndDestroy()
    case "cut":
      response.writeHead(answer.status, { "content-length": "1000" }).write("the beginning", () => socket.destroy())
      return
    case "raw":
      return socket.end(answer.bytes)
    case "trickle": {
      response.writeHead(answer.status).flushHeaders()
      const timer = setInterval(() => response.write("."), TRICKLE_MS)
      return response.on("close", () => clearInterval(timer))
    }
    case "endless": {
      response.writeHead(answer.status)
      const fill = () => {
        while (!response.destroyed && response.write(CHUNK)) continue
      }
      return response.on("drain", fill) && fill()
    }
  }
}

/** Starts a receiver on a free port, or on `port` (to come back after it was away); it ends with the scope. */
export const startReceiver = (options: { readonly port?: number } = {}): Effect.Effect<Receiver, Error, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ receiver: Receiver; close: Effect.Effect<void> }, Error>((resume) => {
      const requests: Array<Received> = []
      const queue: Array<Answer> = []
      const checks = new Set<() => void>()
      let abandoned = 0
      let standard: (request: Arrived) => Answer = accept

      const changed = () => {
        for (const check of checks) check()
      }

      const waitFor = <A>(test: () => A | undefined, describe: () => string, withinMs: number) =>
        Effect.callback<A, Error>((resumeWait) => {
          const check = () => {
            const found = test()
            if (found === undefined) return
            stop()
            resumeWait(Effect.succeed(found))
          }
          const timer = setTimeout(() => {
            stop()
            resumeWait(Effect.fail(new Error(describe())))
          }, withinMs)
          const stop = () => {
            clearTimeout(timer)
            checks.delete(check)
          }
          checks.add(check)
          check()
          return Effect.sync(stop)
        })

      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        const { socket } = request
        request.on("error", () => {})
        response.on("error", () => {})
        response.on("close", () => {
          if (response.writableFinished) return
          abandoned += 1
          changed()
        })
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const arrived: Arrived = {
            order: requests.length,
            method: request.method ?? "",
            path: request.url ?? "",
            headers: flatten(request.headers),
            body: Buffer.concat(chunks),
            clientPort: socket.remotePort ?? 0,
          }
          const answer = queue.shift() ?? standard(arrived)
          requests.push({ ...arrived, answer })
          give(answer, response, socket)
          changed()
        })
      })
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(options.port ?? 0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const receiver: Receiver = {
          origin: `http://127.0.0.1:${port}`,
          port,
          requests,
          next: (...answers) => void queue.push(...answers),
          always: (answer) => {
            standard = typeof answer === "function" ? answer : () => answer
          },
          waitUntil: (predicate, withinMs = 10_000) =>
            waitFor(
              () => (predicate(requests) ? requests : undefined),
              () =>
                `what was waited for did not arrive within ${withinMs} ms; ${requests.length} requests did:\n` +
                requests
                  .slice(-20)
                  .map(({ order, method, path, body }) => `${order} ${method} ${path} ${body.subarray(0, 200)}`)
                  .join("\n"),
              withinMs,
            ),
          waitUntilAbandoned: (count, withinMs = 10_000) =>
            Effect.asVoid(
              waitFor(
                () => (abandoned >= count ? true : undefined),
                () => `${abandoned} of ${count} connections were closed within ${withinMs} ms`,
                withinMs,
              ),
            ),
        }
        const close = Effect.callback<void>((resumeClose) => {
          server.close(() => resumeClose(Effect.void))
          server.closeAllConnections()
        })
        resume(Effect.succeed({ receiver, close }))
      })
    }),
    ({ close }) => close,
  ).pipe(Effect.map(({ receiver }) => receiver))
