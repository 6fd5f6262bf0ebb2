import { Effect, Layer, ManagedRuntime } from "effect"
import { type GraphqlServerOptions, GraphqlServer } from "../../server/http.ts"
import { FakeEngine } from "./fake-engine.ts"

/** A real server on a free port, over an engine in memory. */
export const serveFake = async (options: Partial<GraphqlServerOptions> = {}) => {
  const engine = new FakeEngine()
  const runtime = ManagedRuntime.make(
    GraphqlServer.layer({ host: "127.0.0.1", port: 0, token: null, closeTimeoutMs: 2_000, ...options }).pipe(
      Layer.provide(engine.layer),
    ),
  )
  const { url, address } = await runtime.runPromise(Effect.service(GraphqlServer))
  return { engine, url, origin: new URL(url).origin, address, close: () => runtime.dispose() }
}

/** Waits until a condition holds; fails after a while. */
export const until = async (condition: () => boolean, what: string): Promise<void> => {
  const deadline = Date.now() + 30_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
