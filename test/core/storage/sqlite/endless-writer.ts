import { Effect } from "effect"
import { layerSqlite } from "../../../../core/storage/sqlite/layer.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, lease, match } from "../builders.ts"

// Mints batches of 20 matches for two sinks, several at a time, and prints the primary of each that was acknowledged.
const write = Effect.gen(function* () {
  const storage = yield* Storage
  const owner = yield* storage.claim("net", lease())
  yield* storage.begin(owner, at(0))
  let next = 1
  const one = Effect.gen(function* () {
    const primary = next++
    const matches = Array.from({ length: 20 }, (_, i) => match(at(primary, i), { sinks: ["log", "alerts"] }))
    yield* storage.mint(owner, batch(matches))
    yield* Effect.sync(() => process.stdout.write(`${primary}\n`))
  })
  yield* Effect.all(
    Array.from({ length: 4 }, () => Effect.forever(one)),
    { concurrency: "unbounded" },
  )
})

await Effect.runPromise(write.pipe(Effect.provide(layerSqlite({ path: process.argv[2]! }))))
