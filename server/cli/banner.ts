import type { Environment } from "../environment.ts"
import { isLoopback } from "../http/guard.ts"

/** What a person sees once the server is up. */
export const banner = (input: {
  readonly url: string
  readonly environment: Environment
  readonly devnet?: { readonly url: string; readonly token: string }
}): string => {
  const { url, environment, devnet } = input
  const lines = [
    "",
    `  blockwatcher is up: open ${url} in a browser`,
    "",
    "  Its tabs hold operations to try: what runs, matches and retractions as they come, a monitor to add.",
    `  The same by a script: curl ${url} -H 'content-type: application/json' -d '{"query":"{ networks { id state } }"}'`,
    "",
    `  rows     ${environment.database.kind === "memory" ? "in memory, gone when it ends" : environment.database.path}`,
    `  seeds    ${environment.seedsDir ?? "none (BLOCKWATCHER_SEEDS_DIR)"}`,
    ...(devnet === undefined ? [] : [`  devnet   ${devnet.url}, its token at ${devnet.token}`]),
    ...(environment.apiToken === null ? [] : ["  access   by BLOCKWATCHER_API_TOKEN"]),
    ...(environment.apiToken === null && !isLoopback(environment.host)
      ? [`  access   OPEN: whoever reaches ${environment.host} may change everything; set BLOCKWATCHER_API_TOKEN`]
      : []),
    "  to end   Ctrl-C",
    "",
  ]
  return lines.join("\n")
}
