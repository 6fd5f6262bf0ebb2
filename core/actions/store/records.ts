import { places, type Session } from "./session.ts"

/** A run of a delivery, as the tables know it. */
export interface RunId {
  /** The delivery's key. */
  readonly key: string
  /** What its number counts the runs of: a match, or the delivery. */
  readonly subject: string
  readonly number: number
}

/** A later run has begun: this one writes nothing any more. */
export class Overtaken extends Error {
  override readonly name = "Overtaken"

  constructor() {
    super("a later run took over")
  }
}

/** The delivery was dealt with before. */
export class AlreadyHandled extends Error {
  override readonly name = "AlreadyHandled"

  constructor() {
    super("the delivery was handled before")
  }
}

/** A provider call as it is recorded: its intent before it is sent, if it may never be repeated, and its result. */
export interface RecordedCall {
  readonly place: number
  readonly operation: string
  readonly argumentsHash: string
  readonly state: "intent" | "done"
  /** Its JSON, once it is done. */
  readonly result: string | null
}

/** What is recorded of some deliveries. */
export interface Records {
  readonly handled: ReadonlySet<string>
  readonly calls: ReadonlyMap<string, ReadonlyArray<RecordedCall>>
}

export const readRecords = async (session: Session, keys: ReadonlyArray<string>): Promise<Records> => {
  const handled = await session.all<{ readonly delivery: string }>(
    `select delivery from blockwatcher_handled_deliveries where delivery in ${places(1, keys.length)}`,
    keys,
  )
  const rows = await session.all<{ readonly [column: string]: unknown }>(
    `select delivery, place, operation, arguments_hash, state, result from blockwatcher_provider_calls
      where delivery in ${places(1, keys.length)} order by delivery, place`,
    keys,
  )
  const calls = Map.groupBy(rows, (row) => row["delivery"] as string)
  return {
    handled: new Set(handled.map(({ delivery }) => delivery)),
    calls: new Map(
      [...calls].map(([key, own]) => [
        key,
        own.map((row) => ({
          place: Number(row["place"]),
          operation: row["operation"] as string,
          argumentsHash: row["arguments_hash"] as string,
          state: row["state"] as RecordedCall["state"],
          result: row["result"] as string | null,
        })),
      ]),
    ),
  }
}

/** Keeps later runs from beginning until the transaction ends; throws `Overtaken` when one has begun. */
export const holdNumber = async (
  session: Session,
  database: "sqlite" | "postgres",
  { subject, number }: RunId,
): Promise<void> => {
  const [row] = await session.all<{ readonly number: number | string }>(
    `select number from blockwatcher_runs where subject = ?${database === "postgres" ? " for update" : ""}`,
    [subject],
  )
  if (row === undefined || Number(row.number) !== number) throw new Overtaken()
}

/** Ends the counting of a subject that has no later runs; throws `Overtaken` when one has begun. */
export const endNumber = async (session: Session, { subject, number }: RunId): Promise<void> => {
  const ended = await session.run(`delete from blockwatcher_runs where subject = ? and number = ?`, [subject, number])
  if (ended === 0) throw new Overtaken()
}

/** Records that a delivery was dealt with; throws `AlreadyHandled` when it is recorded. */
export const recordHandled = async (session: Session, key: string, now: number): Promise<void> => {
  const written = await session.run(
    `insert into blockwatcher_handled_deliveries (delivery, handled_at) values (?, ?) on conflict (delivery) do nothing`,
    [key, now],
  )
  if (written === 0) throw new AlreadyHandled()
}

/** Records a call, or replaces what is recorded at its place. */
export const recordCall = async (session: Session, key: string, call: RecordedCall, now: number): Promise<void> => {
  await session.run(
    `insert into blockwatcher_provider_calls (delivery, place, operation, arguments_hash, state, result, sent_at)
      values (?, ?, ?, ?, ?, ?, ?)
      on conflict (delivery, place) do update set state = excluded.state, result = excluded.result`,
    [key, call.place, call.operation, call.argumentsHash, call.state, call.result, now],
  )
}

/** Forgets the intent of a call that did nothing; answers how many there were. */
export const forgetIntent = (session: Session, key: string): Promise<number> =>
  session.run(`delete from blockwatcher_provider_calls where delivery = ? and state = 'intent'`, [key])
