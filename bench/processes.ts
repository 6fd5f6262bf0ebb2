import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import type { ChainStats, ServeTask } from "./chain.ts"
import type { ChainSize } from "./made-chain.ts"

/** A served made chain. */
export interface ServedChain extends ChainSize {
  readonly url: string
  readonly stats: () => Promise<ChainStats>
  /** Starts the counts anew. */
  readonly reset: () => Promise<void>
  readonly stop: () => void
}

const started = (file: string, task: object): ChildProcess =>
  fork(new URL(file, import.meta.url), [JSON.stringify(task)], { stdio: ["ignore", "inherit", "inherit", "ipc"] })

/** The first message of a child; fails if it ends without one. */
const message = async <A>(child: ChildProcess, name: string): Promise<A> => {
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`${name} ended without a result (${signal ?? `code ${code}`})`)
  })
  const [result] = await Promise.race([once(child, "message"), ended])
  return result as A
}

/** Serves a chain from a process of its own. */
export const serveChain = async (size: ServeTask): Promise<ServedChain> => {
  const child = started("chain.ts", size)
  const { url } = await message<{ readonly url: string }>(child, "the chain's server")
  return {
    ...size,
    url,
    stats: async () => (await (await fetch(url)).json()) as ChainStats,
    reset: async () => {
      await (await fetch(url, { method: "DELETE" })).text()
    },
    stop: () => child.disconnect(),
  }
}

/** Runs a contender in a process of its own and waits until it has ended. */
export const runContender = async <A>(name: string, task: object): Promise<A> => {
  const child = started(`contenders/${name}.ts`, task)
  const exited = once(child, "exit")
  const result = await message<A>(child, name)
  await exited
  return result
}
