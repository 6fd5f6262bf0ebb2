import { Clock, Effect, Layer } from "effect"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { storageContract } from "../contract.ts"
import { nameIn, runtimeDatabases } from "./databases.ts"
import { postgresServer } from "./server.ts"

const postgres = postgresServer()

/** A database whose clock stands where it is set, for leases go by the database's clock and not by this process's. */
const frozenClock = `
  create table present (at timestamptz not null);
  insert into present values (to_timestamp(0));
  create function public.clock_timestamp() returns timestamptz language sql as 'select at from public.present'`

const database = runtimeDatabases(() => postgres.server, {
  prepared: `${frozenClock}; alter role postgres set search_path = public, pg_catalog`,
})

const layer = () =>
  Layer.unwrap(
    Effect.gen(function* () {
      const url = yield* database
      const execute = (statement: string) => Effect.promise(() => postgres.server.execute(nameIn(url), statement))
      const setClock = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        execute(`update present set at = to_timestamp(${now}::numeric / 1000)`),
      )
      return Layer.effect(
        Storage,
        Effect.map(Storage, (storage) =>
          Storage.of({
            ...storage,
            claim: (network, lease) => Effect.andThen(setClock, storage.claim(network, lease)),
            renew: (owner, ms) => Effect.andThen(setClock, storage.renew(owner, ms)),
          }),
        ),
      ).pipe(Layer.provide(layerPostgres({ url })))
    }),
  )

storageContract("postgres", layer, { concurrent: true })
