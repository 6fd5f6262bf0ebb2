import type { NativeClient } from "./native.ts"

/**
 * What connections are for: changes of tables, which may take long, rows, where each statement is short, or the statements of
 * a program, which are its own.
 */
export type ClientUse = "migrations" | "rows" | "program"

const CONNECT_MS = 5_000
/** A peer that said nothing for so long is taken for gone, though its connection may look alive for hours. */
const SILENCE_MS = 10_000
const LOCK_MS = 5_000
const IDLE_MS = 8_000
const CONNECTIONS = 12

/**
 * The planner knows nothing of tables that fill faster than their statistics are gathered. Every statement is written for
 * an index, read in loops, and is planned once: a plan that looks good while a table is empty must hold when it is large.
 */
const planner = [
  "SET plan_cache_mode = force_generic_plan",
  ...["seqscan", "bitmapscan", "hashjoin", "mergejoin"].map((way) => `SET enable_${way} = off`),
  // Rows that are hot are in memory: an index that is passed over for being scattered costs far more.
  "SET random_page_cost = 1",
  "SET max_parallel_workers_per_gather = 0",
  "SET jit = off",
].join("; ")

const settings = [
  // A transaction whose process stands still, or is gone, must not hold its network's row for longer.
  `SET idle_in_transaction_session_timeout = ${SILENCE_MS}`,
  `SET lock_timeout = ${LOCK_MS}`,
  // What was acknowledged is on disk, whatever the server does by default.
  "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
].join("; ")

const prepare = async (client: NativeClient, text: string): Promise<void> => {
  const { stream } = client.connection
  stream.setTimeout(SILENCE_MS, () => stream.destroy(new Error("no answer for 10 s")))
  await client.query({ text })
}

/** Prepares a connection for rows. */
export const startSession = (client: NativeClient): Promise<void> => prepare(client, `${planner}; ${settings}`)

/** Prepares a connection for a program, whose statements are planned as usual. */
const startProgramSession = (client: NativeClient): Promise<void> => prepare(client, settings)

const onConnect: Readonly<Record<ClientUse, object>> = {
  migrations: {},
  rows: { onConnect: startSession },
  program: { onConnect: startProgramSession },
}

/** Options of the driver. */
export const clientOptions = (url: string, use: ClientUse) => ({
  connectionString: url,
  application_name: "blockwatcher",
  connectionTimeoutMillis: CONNECT_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: SILENCE_MS,
  max: CONNECTIONS,
  idleTimeoutMillis: IDLE_MS,
  ...onConnect[use],
})
