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

/** Which of some deliveries were dealt with, by their keys. */
export const readHandled = async (session: Session, keys: ReadonlyArray<string>): Promise<ReadonlySet<string>> => {
  const rows = await session.all<{ readonly delivery: string }>(
    `select delivery from blockwatcher_handled_deliveries where delivery in ${places(1, keys.length)}`,
    keys,
  )
  return new Set(rows.map(({ delivery }) => delivery))
}

export const readRecords = async (session: Session, keys: ReadonlyArray<string>): Promise<Records> => {
  const handled = await readHandled(session, keys)
  const rows = await session.all<{ readonly [column: string]: unknown }>(
    `select delivery, place, operation, arguments_hash, state, result from blockwatcher_provider_calls
      where delivery in ${places(1, keys.length)} order by delivery, place`,
    keys,
  )
  const calls = Map.groupBy(rows, (row) => row["delivery"] as string)
  return {
    handled,
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

/** Keeps later runs from beginning until the transaction ends; answers the numbers of the latest that have begun. */
export const holdNumbers = async (
  session: Session,
  subjects: ReadonlyArray<string>,
): Promise<ReadonlyMap<string, number>> => {
  const lock = session.database === "postgres" ? "order by subject for update" : ""
  const rows = await session.all<{ readonly subject: string; readonly number: number | string }>(
    `select subject, number from blockwatcher_runs where subject in ${places(1, subjects.length)} ${lock}`,
    subjects,
  )
  return new Map(rows.map(({ subject, number }) => [subject, Number(number)]))
}

/** The same of one run; throws `Overtaken` when a later one has begun. */
export const holdNumber = async (session: Session, { subject, number }: RunId): Promise<void> => {
  if ((await holdNumbers(session, [subject])).get(subject) !== number) throw new Overtaken()
}

/** Ends the counting of subjects that have no later runs. */
export const endNumbers = async (session: Session, subjects: ReadonlyArray<string>): Promise<void> => {
  await session.run(`delete from blockwatcher_runs where subject in ${places(1, subjects.length)}`, subjects)
}

/** Records that deliveries were dealt with. */
export const recordHandled = async (session: Session, keys: ReadonlyArray<string>, now: number): Promise<void> => {
  await session.run(
    `insert into blockwatcher_handled_deliveries (delivery, handled_at) values ${places(keys.length, 2)}`,
    keys.flatMap((key) => [key, now]),
  )
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
