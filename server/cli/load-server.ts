import { Effect } from "effect"

/**
 * Loads the engine and the control plane. That takes a second or more, which the help text, a check and a refused
 * environment need not wait for.
 */
export const loadServer = Effect.promise(async () => {
  const [{ engineLayer }, { runServer }] = await Promise.all([import("./engine.ts"), import("./run-server.ts")])
  return { engineLayer, runServer }
})
