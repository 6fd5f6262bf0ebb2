import { Context, Effect, Layer } from "effect"
import { Blockwatcher, type NetworkView, Resources, type RuntimeOptions } from "../../core/index.ts"
import { endOf, isAfter } from "../../core/model/cursor.ts"
import { layerSqlite } from "../../core/storage/sqlite/layer.ts"
import { waitUntil } from "./scripted-source.ts"

type Options = Omit<RuntimeOptions<never>, "storage"> & { readonly path?: string }

/** Starts a runtime in the present scope, in memory unless a database file is named; closing the scope drains it. */
export const startRuntime = Effect.fnUntraced(function* ({ path, ...options }: Options) {
  return yield* Layer.build(Blockwatcher.layer({ storage: layerSqlite({ path: path ?? ":memory:" }), ...options }))
})

type Runtime = Effect.Success<ReturnType<typeof startRuntime>>

export const resourcesOf = (runtime: Runtime): Resources["Service"] => Context.get(runtime, Resources)

/** The network as it is shown now. */
export const networkNow = (runtime: Runtime, id: string): Effect.Effect<NetworkView> =>
  resourcesOf(runtime).networks.pipe(
    Effect.map((networks) => networks.find((network) => network.id === id)!),
    Effect.orDie,
  )

export const waitForCheckpoint = (runtime: Runtime, id: string, primary: number): Effect.Effect<void> =>
  waitUntil(
    `the checkpoint of ${id} is at ${primary}`,
    Effect.map(
      networkNow(runtime, id),
      ({ checkpoint }) => checkpoint !== null && !isAfter(endOf(primary), checkpoint.cursor),
    ),
  )

export type { Runtime }
