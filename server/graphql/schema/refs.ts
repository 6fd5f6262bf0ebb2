import type { MonitorView, NetworkView } from "../../../core/engine/resources.ts"
import { builder } from "../builder.ts"

/** Types that name each other; each is implemented in its own file. */
export const NetworkType = builder.objectRef<NetworkView>("Network")
export const MonitorType = builder.objectRef<MonitorView>("Monitor")
