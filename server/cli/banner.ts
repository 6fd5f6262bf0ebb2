import { Redacted } from "effect"
import { shownAddress } from "../../core/storage/postgres/address.ts"
import type { Database } from "../environment-values.ts"
import type { Environment } from "../environment.ts"
import { isLoopback } from "../http/guard.ts"

/** Where the rows are, without what lets one in. */
const rowsIn = (database: Database): string => {
  if (database.kind === "memory") return "in memory, gone when it ends"
  return database.kind === "sqlite" ? database.path : shownAddress(Redacted.value(database.url))
}

/** What a person sees once the server is up. */
export const banner = (input: {
  readonly url: string
  readonly environment: Environment
  readonly devnet?: { readonly urls: ReadonlyArray<string>; readonly token: string }
}): string => {
  const { url, environment, devnet } = input
  const { tracing } = environment
  const lines = [
    "",
    `  blockwatcher is up: open ${url} in a browser`,
    "",
    "  Its tabs hold operations to try: what runs, matches and retractions as they come, a monitor to add.",
    `  The same by a script: curl ${url} -H 'content-type: application/json' -d '{"query":"{ networks { id state } }"}'`,
    "",
    `  rows     ${rowsIn(environment.database)}`,
    `  seeds    ${environment.seedsDir ?? "none (BLOCKWATCHER_SEEDS_DIR)"}`,
    ...(devnet === undefined ? [] : [`  devnet   ${devnet.urls.join(", ")}, its token at ${devnet.token}`]),
    ...(tracing === null ? [] : [`  traces   ${tracing.endpoint.origin}${tracing.endpoint.pathname}`]),
    ...(environment.apiToken === null ? [] : ["  access   by BLOCKWATCHER_API_TOKEN"]),
    ...(environment.apiToken === null && !isLoopback(environment.host)
      ? [`  access   OPEN: whoever reaches ${environment.host} may change everything; set BLOCKWATCHER_API_TOKEN`]
      : []),
    "  to end   Ctrl-C",
    "",
  ]
  return lines.join("\n")
}
