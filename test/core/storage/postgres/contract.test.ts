import { Clock, Effect, Layer } from "effect"
import { beforeAll } from "vitest"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { storageContract } from "../contract.ts"
import { postgresServer } from "./server.ts"

const postgres = postgresServer()

/** A database whose clock stands where it is set, for leases go by the database's clock and not by this process's. */
const frozenClock = `
  create table present (at timestamptz not null);
  insert into present values (to_timestamp(0));
  create function public.clock_timestamp() returns timestamptz language sql as 'select at from public.present'`

/** Has the tables and that clock: a copy is made sooner than they are. */
const TEMPLATE = "template"

beforeAll(async () => {
  const url = await postgres.server.database(TEMPLATE)
  await postgres.server.execute(TEMPLATE, frozenClock)
  await postgres.server.execute(TEMPLATE, "alter role postgres set search_path = public, pg_catalog")
  await Effect.runPromise(Effect.scoped(Layer.build(layerPostgres({ url }))))
})

let databases = 0

const layer = () =>
  Layer.unwrap(
    Effect.gen(function* () {
      const name = `contract_${++databases}`
      const execute = (statement: string) => Effect.promise(() => postgres.server.execute(name, statement))
      const url = yield* Effect.promise(() => postgres.server.database(name, TEMPLATE))
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
