import { Effect } from "effect"
import type { SinkDefinition } from "../model/resource.ts"
import type { StorageError } from "../storage/error.ts"
import type { Storage } from "../storage/storage.ts"
import type { Stored } from "../storage/stored.ts"
import type { Catalog } from "./catalog.ts"
import { Conflict } from "./error.ts"
import type { SinkRegistry } from "./sink-registry.ts"

/**
 * A sink with a throttle does not give up its durable buffer while rows rest there: what would have waited for the next
 * window would be dead letters.
 */
export const checkBuffers = Effect.fnUntraced(function* (
  catalog: Catalog,
  registry: SinkRegistry,
  storage: Storage["Service"],
  sinks: ReadonlyArray<Stored<SinkDefinition>>,
): Effect.fn.Return<void, Conflict | StorageError> {
  for (const { definition } of sinks) {
    const { id, buffer, throttle } = definition
    const before = registry.get(id)?.definition.buffer
    if (before !== "DURABLE" || buffer === "DURABLE" || throttle === null) continue
    for (const network of catalog.networks.keys()) {
      if ((yield* storage.oldestOwed(network, id)) === null) continue
      const reason =
        `sink "${id}" cannot give up its durable buffer yet: network "${network}" still owes it deliveries, of which its ` +
        `throttle would make dead letters; wait until they are sent; DURABLE without a throttle, they go sooner`
      return yield* new Conflict({ reason })
    }
  }
})
