import { Effect, Layer, type Redacted } from "effect"
import type { OpenError } from "./open-error.ts"
import type { Storage } from "./storage.ts"

/**
 * Storage in a PostgreSQL database, which several processes may share. Brings an older database up to date; one that is
 * empty gets its tables. Its driver takes a while to load, which whoever does not use it need not wait for.
 *
 * @param options.url `postgres://user:password@host:port/database`, with the parameters of libpq such as `sslmode`
 */
export const layerPostgres = (options: { readonly url: string | Redacted.Redacted }): Layer.Layer<Storage, OpenError> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./postgres/layer.ts")),
      ({ layer }) => layer(options.url),
    ),
  )
