import { Effect } from "effect"
import type { NetworkDefinition } from "../model/resource.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { StorageError } from "../storage/error.ts"
import type { Storage } from "../storage/storage.ts"
import type { Stored } from "../storage/stored.ts"
import { revisionOf } from "./canonical.ts"
import type { Catalog } from "./catalog.ts"
import { Conflict } from "./error.ts"

/**
 * A network's module, and the config fields that its plugin names as fixed, cannot change while it has a checkpoint:
 * what is stored would be read as positions of another feed.
 */
export const checkFixed = Effect.fnUntraced(function* (
  catalog: Catalog,
  plugins: Plugins["Service"],
  storage: Storage["Service"],
  networks: ReadonlyArray<Stored<NetworkDefinition>>,
): Effect.fn.Return<void, Conflict | StorageError> {
  for (const { definition } of networks) {
    const before = catalog.networks.get(definition.id)?.definition
    if (before === undefined) continue
    const fixed = plugins.source(definition.module)?.fixed ?? []
    const changed =
      before.module !== definition.module
        ? ["module"]
        : fixed.filter((field) => revisionOf([before.config[field]]) !== revisionOf([definition.config[field]]))
    if (changed.length === 0) continue
    const pipeline = yield* storage.pipeline(definition.id)
    if (pipeline === null || pipeline.checkpoint === null) continue
    const reason = `${changed.join(" and ")} of network "${definition.id}" cannot change while it has a checkpoint; delete the network and create it again`
    return yield* new Conflict({ reason })
  }
})
