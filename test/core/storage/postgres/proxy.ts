import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** What happens to a connection whose client sends a COMMIT: it breaks before the server hears of it, or before it answers. */
export type Cut = "before" | "after"

export interface Proxy {
  /** The same address, by way of the proxy. */
  readonly url: string
  /** Cuts the next connection that commits, if it sent a statement that holds `marker` before. */
  readonly cutNextCommit: (cut: Cut, marker: string) => void
  /** Whether it was cut. */
  readonly hasCut: () => boolean
  /** From the next statement that holds `marker` on, no answer comes any more. */
  readonly fallSilentAt: (marker: string) => void
  /** Whether it is silent. */
  readonly isSilent: () => boolean
}

/** Stands between a client and the server, and breaks connections at the worst moment. */
export const proxy = (url: string): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const target = new URL(url)
      const sockets = new Set<Socket>()
      let pending: { readonly cut: Cut; readonly marker: string } | null = null
      let cuts = 0
      let silencing: string | null = null
      let silent = false
      const server = createServer((client) => {
        const upstream = connect(Number(target.port), target.hostname)
        let sent = ""
        let mute = false
        const end = () => {
          client.destroy()
          upstream.destroy()
        }
        for (const socket of [client, upstream]) {
          sockets.add(socket)
          socket.on("error", end).on("close", () => {
            sockets.delete(socket)
            end()
          })
        }
        client.on("data", (chunk) => {
          sent += chunk.toString("latin1")
          if (silencing !== null && sent.includes(silencing)) silent = true
          if (pending !== null && sent.includes(pending.marker) && chunk.includes("COMMIT")) {
            const { cut } = pending
            pending = null
            cuts++
            if (cut === "before") return end()
            mute = true
          }
          if (chunk.includes("COMMIT")) sent = ""
          upstream.write(chunk)
        })
        upstream.on("data", (chunk) => {
          if (mute) end()
          else if (!silent) client.write(chunk)
        })
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const through = new URL(url)
      through.port = `${(server.address() as AddressInfo).port}`
      return {
        url: through.href,
        cutNextCommit: (cut: Cut, marker: string) => {
          pending = { cut, marker }
        },
        hasCut: () => cuts > 0,
        fallSilentAt: (marker: string) => {
          silencing = marker
        },
        isSilent: () => silent,
        close: async () => {
          for (const socket of sockets) socket.destroy()
          server.close()
          await once(server, "close")
        },
      }
    }),
    ({ close }) => Effect.promise(close),
  )
