import type { Health } from "../../core/engine/blockwatcher.ts"

/** Whether everything works: the database answers, and no network is in trouble. */
export const isReady = ({ networks, storage }: Health): boolean =>
  storage === null && networks.every(({ state, error }) => state !== "FAILED" && error === null)

/** The body of `/healthz` and `/readyz`. */
export const healthBody = (health: Health) => ({ status: isReady(health) ? "ok" : "degraded", ...health })
