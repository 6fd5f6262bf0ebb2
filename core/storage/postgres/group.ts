import { Effect } from "effect"
import { NetworkRow, type PipelineTuple } from "../network-row.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import type { NumberName, Numbers } from "./numbers.ts"
import { pipelineColumns, sql } from "./sql.ts"

/** What the writes of one transaction share: the network's row, locked and written back once, and its session. */
export interface Group {
  readonly session: Session
  readonly network: NetworkRow
  /** Whether events of actions are among what was written. */
  wroteEvents: boolean
  /** Takes `count` numbers, which grow. */
  readonly take: (name: NumberName, count: number) => Effect.Effect<ReadonlyArray<number>, QueryFailed>
  /** Lets go of numbers that are not beyond those of another process. */
  readonly forgetNumbers: Effect.Effect<void>
}

const literal = (value: string | number | null): string => {
  if (value === null) return "NULL"
  if (typeof value === "number") return `${value}`
  return ` E'${value.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`
}

// Both ends of a transaction are written out, without parameters: several statements then go in one message.

const lockSql = (id: string): string =>
  `SELECT ${pipelineColumns}
    FROM pipelines WHERE network = ${literal(id)} FOR UPDATE`

const updateSql = (network: NetworkRow): string =>
  `UPDATE pipelines SET (${pipelineColumns}) = (${network.values.map(literal).join(", ")})
    WHERE network = ${literal(network.id)}`

/**
 * Begins a transaction and locks a network's row until its end; undefined when there is none and none is to be made.
 * Whoever waited for the lock sees what was committed meanwhile.
 */
export const beginGroup = Effect.fnUntraced(function* (
  session: Session,
  numbers: Numbers,
  id: string,
  make: boolean,
): Effect.fn.Return<Group | undefined, QueryFailed> {
  let [tuple] = yield* session.say<PipelineTuple>("BEGIN ISOLATION LEVEL READ COMMITTED", lockSql(id))
  if (tuple === undefined && make) {
    yield* session.run(sql.insertNetwork, [id])
    ;[tuple] = yield* session.say<PipelineTuple>(lockSql(id))
  }
  if (tuple === undefined) return undefined
  return {
    session,
    wroteEvents: false,
    network: new NetworkRow(id, tuple),
    take: (name, count) => numbers.take(session, name, count),
    forgetNumbers: numbers.forget,
  }
})

/** Writes the network's row back and commits. */
export const commitGroup = (session: Session, network: NetworkRow | undefined): Effect.Effect<void, QueryFailed> =>
  Effect.asVoid(network?.dirty === true ? session.say(updateSql(network), "COMMIT") : session.say("COMMIT"))
