import { Blockwatcher, EventStore, type Storage } from "blockwatcher"
import evmRpc from "blockwatcher/plugins/evm-rpc"
import type { Layer } from "effect"
import { confirm } from "./actions/confirm.ts"
import { credit } from "./actions/credit.ts"
import { settle } from "./actions/settle.ts"
import { resources, type Watched } from "./resources.ts"
import { tables } from "./tables/tables.ts"

/** The exchange. Its tables stand in the database of the runtime, so that what an action writes commits with its event. */
export const exchange = <E>(storage: Layer.Layer<Storage, E>, watched: Watched) =>
  Blockwatcher.layer({
    storage,
    plugins: [evmRpc],
    resources: resources(watched),
    actions: [credit, settle, confirm],
    eventStore: EventStore.layerRuntime(tables),
  })
