import type { ChainStats } from "./chain.ts"
import type { Measured, Reported } from "./contender.ts"
import type { ActionRun, ActionSpeeds } from "./contenders/actions.ts"
import type { LetterTimes } from "./contenders/letters.ts"
import type { StatementTimes } from "./contenders/statements.ts"
import type { Stall } from "./contenders/stalled.ts"

type Run = Reported<Measured>
type Watched = Run & { readonly stats: ChainStats; readonly delivered: number }

/** What one round measured. */
export interface Round {
  readonly socket: Run
  readonly parse: Run
  readonly rare: Watched
  readonly cold: Watched
  readonly quiet: Watched
  /** As `quiet`, in ranges of 1,000 blocks. */
  readonly wide: Watched
  readonly all: Watched
  readonly inserts: Run
  readonly oneByOne: Run
  readonly ahead: Run
  readonly few: Run
  readonly many: Run
  readonly alone: Run
  readonly beside: Run & { readonly stalled: Stall | null }
}

type Rounds = ReadonlyArray<Round>
type Pick = (round: Round) => Run

const NAME = 54
const COLUMN = 12

/** Whether a bound holds, in words. */
export const atMost = (value: number, most: number): string => `at most ${most}: ${value <= most ? "met" : "missed"}`

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const count = (value: number): string => Math.round(value).toLocaleString("en")

const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`

export const row = (name: string, ...columns: ReadonlyArray<string>): string =>
  name.padEnd(NAME) + columns.map((column) => column.padStart(COLUMN)).join("")

/** Logs a second. */
const speed = (rounds: Rounds, pick: Pick): number =>
  median(rounds.map((round) => (pick(round).logs * 1000) / pick(round).ms))

/** CPU time a log, in µs. */
const work = (rounds: Rounds, pick: Pick): number =>
  median(rounds.map((round) => (pick(round).cpuMs * 1000) / pick(round).logs))

const speedRow = (rounds: Rounds, name: string, pick: Pick): string =>
  row(
    name,
    count(speed(rounds, pick)),
    work(rounds, pick).toFixed(1),
    mib(median(rounds.map((round) => pick(round).peakRss))),
  )

/** Medians of the ratios of each round, whose runs shared the machine's mood more than those of different rounds. */
const ratioRow = (rounds: Rounds, name: string, a: Pick, b: Pick, target: number | null): string => {
  const ratio = median(rounds.map((round) => speed([round], a) / speed([round], b)))
  const effort = median(rounds.map((round) => work([round], b) / work([round], a)))
  const verdict = target === null ? "" : `   at least ${target}: ${ratio >= target ? "met" : "missed"}`
  return row(name, ratio.toFixed(2), effort.toFixed(2)) + verdict
}

/** HTTP requests for 1,000 blocks, at most. */
const REQUESTS = 3

const requestRow = (name: string, { stats }: Watched, blocks: number, most: number | null = null): string => {
  const each = (requests: number) => ((requests * 1000) / blocks).toFixed(1)
  const calls = Object.entries(stats.calls).map(([method, requests]) => `${method} ${each(requests)}`)
  const verdict = most === null ? "" : `   ${atMost((stats.http * 1000) / blocks, most)}`
  return `${row(name, each(stats.http))}   ${calls.join(", ")}${verdict}`
}

/** Renders the medians of the rounds; `blocks` is the length of the long chain. */
export const report = (rounds: Rounds, blocks: number): string => {
  const last = rounds.at(-1)!
  const stalls = rounds.flatMap(({ beside }) => (beside.stalled === null ? [] : [beside.stalled]))
  const stall = (pick: (stall: Stall) => number) => median(stalls.map(pick))
  return [
    row(`medians of ${rounds.length} rounds`, "logs/s", "CPU µs/log", "peak RSS"),
    speedRow(rounds, "1   bytes off the socket", (round) => round.socket),
    speedRow(rounds, "2   the same, and JSON.parse", (round) => round.parse),
    speedRow(rounds, "3   pipeline, predicate rarely holds", (round) => round.rare),
    speedRow(rounds, "3c  the same in a process that just started", (round) => round.cold),
    speedRow(rounds, "4   pipeline, every log is matched and delivered", (round) => round.all),
    speedRow(rounds, "5   raw grouped inserts of the rows of 4", (round) => round.inserts),
    speedRow(rounds, "7a  one range at a time, of a node that answers late", (round) => round.oneByOne),
    speedRow(rounds, "7b  pipeline over the same node", (round) => round.ahead),
    speedRow(rounds, "8a  a network alone", (round) => round.alone),
    speedRow(rounds, "8b  the same beside a stalled network", (round) => round.beside),
    speedRow(rounds, "11a 10 monitors that no log concerns", (round) => round.few),
    speedRow(rounds, "11b 10,000 monitors that no log concerns", (round) => round.many),
    "",
    row("ratios", "speed", "CPU"),
    ratioRow(
      rounds,
      "3 to 2",
      (round) => round.rare,
      (round) => round.parse,
      0.6,
    ),
    ratioRow(
      rounds,
      "3c to 2",
      (round) => round.cold,
      (round) => round.parse,
      null,
    ),
    ratioRow(
      rounds,
      "4 to 5",
      (round) => round.all,
      (round) => round.inserts,
      0.3,
    ),
    ratioRow(
      rounds,
      "8b to 8a",
      (round) => round.beside,
      (round) => round.alone,
      0.8,
    ),
    ratioRow(
      rounds,
      "7b to 7a",
      (round) => round.ahead,
      (round) => round.oneByOne,
      4,
    ),
    ratioRow(
      rounds,
      "11b to 11a",
      (round) => round.many,
      (round) => round.few,
      0.5,
    ),
    "",
    `${row("6   requests per 1,000 blocks", "HTTP")}   calls by method`,
    requestRow("    of 3", last.rare, blocks),
    requestRow("    of quiet blocks", last.quiet, blocks),
    requestRow("    of quiet blocks, in ranges of 1,000", last.wide, blocks, REQUESTS),
    "",
    row("8   while the other network is stalled", "RSS before", "RSS after", "in flight"),
    row(
      "",
      mib(stall(({ rssAtStart }) => rssAtStart)),
      mib(stall(({ rssAtEnd }) => rssAtEnd)),
      count(stall(({ inFlight }) => inFlight)),
    ),
  ].join("\n")
}

interface Times {
  readonly name: string
  readonly micros: ReadonlyArray<number>
}

const ratioOf = ({ micros }: Times): number => micros.at(-1)! / micros[0]!

const timesRow = (times: Times): string =>
  row(`    ${times.name}`, ...times.micros.map((micros) => micros.toFixed(1)), ratioOf(times).toFixed(2))

const worstRow = (all: ReadonlyArray<Times>, sizes: ReadonlyArray<number>): string => {
  const worst = Math.max(...all.map(ratioOf))
  return `${row("    the largest ratio", ...sizes.map(() => ""), worst.toFixed(2))}   ${atMost(worst, 2)}`
}

/** Renders the times of statements by the number of delivery rows, the ratio of the last size to the first, and the plan. */
export const reportStatements = (
  title: string,
  statements: ReadonlyArray<StatementTimes>,
  sizes: ReadonlyArray<number>,
): string =>
  [
    "",
    row(title, ...sizes.map(count), "ratio") + "   looks up by",
    ...statements.map((statement) => `${timesRow(statement)}   ${statement.plan}`),
    worstRow(statements, sizes),
  ].join("\n")

/** Renders the times of a page of dead letters with their count, by how many there are. */
export const reportLetters = (times: ReadonlyArray<LetterTimes>, sizes: ReadonlyArray<number>): string =>
  [
    "",
    row("10  µs a page of 50, by dead letters", ...sizes.map(count), "ratio"),
    ...times.map(timesRow),
    worstRow(times, sizes),
  ].join("\n")

const speedOf = ({ logs, ms }: Measured): number => (logs * 1000) / ms

/** The least that deliveries to an action may reach of those that are written by hand. */
const ACTIONS = 0.3

/** Renders the speeds of deliveries to an action, beside the same rows written by hand. */
export const reportActions = ({ sqlite, postgres }: ActionSpeeds): string => {
  const runRow = (name: string, { action, byHand }: ActionRun) => {
    const ratio = speedOf(action) / speedOf(byHand)
    const columns = [count(speedOf(action)), count(speedOf(byHand)), ratio.toFixed(2)]
    return `${row(`    ${name}`, ...columns)}   at least ${ACTIONS}: ${ratio >= ACTIONS ? "met" : "missed"}`
  }
  return [
    "",
    row("13  deliveries/s to an action that writes one row", "action", "by hand", "ratio"),
    runRow("on SQLite", sqlite),
    runRow("on PostgreSQL", postgres),
  ].join("\n")
}
