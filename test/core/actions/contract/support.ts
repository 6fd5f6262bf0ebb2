import { it } from "@effect/vitest"
import { Effect, Schema, type Scope } from "effect"
import { EventType } from "../../../../core/actions/event-type.ts"
import { Match } from "../../../../core/actions/match.ts"
import type { Started, World } from "../program.ts"

/** Declares a test on databases of its own. */
export type Test = (name: string, body: (world: World) => Effect.Effect<unknown, unknown, Scope.Scope>) => void

/** @param make makes empty databases, each time it is run */
export const testOn =
  (make: Effect.Effect<World, never, Scope.Scope>): Test =>
  (name, body) =>
    it.live(name, () => Effect.scoped(Effect.flatMap(make, body)))

export const Deposited = EventType.make({
  name: "deposited",
  version: 1,
  schema: Schema.Struct({ id: Schema.String, amount: Schema.BigInt }),
})

export const Noted = EventType.make({ name: "noted", version: 1, schema: Schema.Struct({ text: Schema.String }) })

/** More digits than any number type of a database holds. */
export const AMOUNT = 115_792_089_237_316_195_423_570_985_008_687_907_853_269_984_665_640_564_039_457_584_007_913_129n

/** The matches of a monitor that nobody runs: their events are written by `writeMatch`. */
export const Transfers = Match.of("transfers", Schema.Struct({ value: Schema.String }))

export interface MatchOf {
  readonly id: string
  readonly life?: number
  readonly kind?: "match" | "retracted"
  readonly value?: string
}

/** Writes the event of a match, or of its retraction, with a delivery to each action, as minting does. */
export const writeMatch = Effect.fnUntraced(function* (
  { runtimeSql }: Started,
  actions: ReadonlyArray<string>,
  { id, life = 1, kind = "match", value = "1" }: MatchOf,
) {
  const event = `${id}-${life}-${kind}`
  const payload = JSON.stringify({ id, monitor: "transfers", network: "net", event: { value } })
  yield* runtimeSql(`insert into blockwatcher_events
    (id, type, version, encoding, payload, depth, created_at, match_id, life, kind, network, primary_pos)
    values ('${event}', 'match:transfers', 1, 1, '${payload}', 0, 0, '${id}', ${life}, '${kind}', 'net', 1)`)
  for (const action of actions) {
    yield* runtimeSql(`insert into blockwatcher_action_deliveries
      (event_seq, action, match_id, state, attempts, due, created_at)
      select seq, '${action}', match_id, 'waiting', 0, 0, 0 from blockwatcher_events where id = '${event}'`)
  }
})

/** Attempts that follow each other at once. */
export const AT_ONCE = { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 1 }
