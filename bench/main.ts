import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Measured, Reported } from "./contender.ts"
import type { ActionSpeeds, ActionsTask } from "./contenders/actions.ts"
import type { InsertsTask } from "./contenders/inserts.ts"
import type { LettersTask, LetterTimes } from "./contenders/letters.ts"
import type { LiveRun, LiveTask } from "./contenders/live.ts"
import type { PipelineTask } from "./contenders/pipeline.ts"
import type { SocketTask } from "./contenders/socket.ts"
import type { Stall, StalledTask } from "./contenders/stalled.ts"
import type { StrangersTask } from "./contenders/strangers.ts"
import type { StatementsTask, StatementTimes } from "./contenders/statements.ts"
import type { PostgresStatementsTask } from "./contenders/statements-postgres.ts"
import { runContender, type ServedChain, serveChain } from "./processes.ts"
import { reportLive } from "./report-live.ts"
import { type Round, report, reportActions, reportLetters, reportStatements } from "./report.ts"

/*
 * Compares the pipeline with its floors: `npm run bench`. Every contender runs once a round, each in a process of its
 * own, against nodes in further processes; what is shown are the medians of the rounds. See docs/performance.md.
 */

const ROUNDS = Number(process.argv[2] ?? 5)
const RANGE = 500
/** The range for which requests are bounded. */
const WIDE_RANGE = 1000
const LONG = { blocks: 40_000, logsPerBlock: 10 }
const SHORT = { blocks: 4_000, logsPerBlock: 10 }
/** Served by a node that answers late, in ranges that it does not let grow. */
const LATE = { blocks: 20_000, logsPerBlock: 1, latencyMs: 50 }
const LATE_RANGE = 100
const WARM_UP = { blocks: 3_000, logsPerBlock: 10 }

const folder = await mkdtemp(join(tmpdir(), "blockwatcher-bench-"))
const [long, short, late, warmUp] = await Promise.all(
  [LONG, SHORT, LATE, WARM_UP].map(serveChain) as [
    Promise<ServedChain>,
    Promise<ServedChain>,
    Promise<ServedChain>,
    Promise<ServedChain>,
  ],
)

const placeOf = ({ url, blocks, logsPerBlock }: ServedChain) => ({ url, blocks, logsPerBlock })

const socket = (chain: ServedChain, range: number, parse: boolean) =>
  runContender<Reported<Measured>>("socket", { ...placeOf(chain), range, parse } satisfies SocketTask)

const pipeline = async (
  chain: ServedChain,
  database: string,
  matching: PipelineTask["matching"],
  warmUp?: ServedChain,
  range = RANGE,
) => {
  await chain.reset()
  const task: PipelineTask = {
    ...placeOf(chain),
    range,
    database,
    matching,
    ...(warmUp === undefined ? {} : { warmUp: placeOf(warmUp) }),
  }
  const measured = await runContender<Reported<Measured & { readonly delivered: number }>>("pipeline", task)
  return { ...measured, stats: await chain.stats() }
}

const inserts = (from: string, database: string) =>
  runContender<Reported<Measured>>("inserts", { from, database } satisfies InsertsTask)

const free = (database: string, stalled: ServedChain | null) =>
  runContender<Reported<Measured & { readonly stalled: Stall | null }>>("stalled", {
    ...placeOf(long),
    range: RANGE,
    database,
    beside: stalled?.url ?? null,
  } satisfies StalledTask)

const strangers = (database: string, monitors: number, addresses: number) =>
  runContender<Reported<Measured>>("strangers", {
    ...placeOf(long),
    range: RANGE,
    database,
    monitors,
    addresses,
  } satisfies StrangersTask)

const SIZES = [1_000, 1_000_000]

const statements = () =>
  runContender<{ readonly statements: ReadonlyArray<StatementTimes> }>("statements", {
    databases: SIZES.map((rows) => ({ path: join(folder, `${rows}.db`), rows })),
  } satisfies StatementsTask)

const statementsOnPostgres = () =>
  runContender<{ readonly statements: ReadonlyArray<StatementTimes> }>("statements-postgres", {
    sizes: SIZES,
  } satisfies PostgresStatementsTask)

const LETTERS = [1_000, 100_000]

const letters = () =>
  runContender<{ readonly times: ReadonlyArray<LetterTimes> }>("letters", {
    databases: LETTERS.map((count) => ({ path: join(folder, `letters-${count}.db`), letters: count })),
  } satisfies LettersTask)

const DELIVERIES = 5_000

const actions = () => runContender<ActionSpeeds>("actions", { folder, deliveries: DELIVERIES } satisfies ActionsTask)

/** One block each 250 ms, for half a minute. */
const GROWTH = { from: 100, everyMs: 250 }
const LIVE = { blocks: 220, logsPerBlock: 10, live: GROWTH }
const POLL_MS = 1000

const live = async (announced: boolean): Promise<LiveRun> => {
  const chain = await serveChain(LIVE)
  const task = {
    url: chain.url,
    database: join(folder, `live-${announced}.db`),
    growth: GROWTH,
    pollMs: POLL_MS,
    announced,
  }
  try {
    return await runContender<Reported<LiveRun>>("live", task satisfies LiveTask)
  } finally {
    chain.stop()
  }
}

const runRound = async (round: number): Promise<Round> => {
  const database = (name: string) => join(folder, `${round}-${name}.db`)
  return {
    socket: await socket(long, RANGE, false),
    parse: await socket(long, RANGE, true),
    rare: await pipeline(long, database("rare"), "rarely", warmUp),
    cold: await pipeline(long, database("cold"), "rarely"),
    quiet: await pipeline(long, database("quiet"), "quiet"),
    wide: await pipeline(long, database("wide"), "quiet", undefined, WIDE_RANGE),
    all: await pipeline(short, database("all"), "all", warmUp),
    inserts: await inserts(database("all"), database("inserts")),
    oneByOne: await socket(late, LATE_RANGE, true),
    ahead: await pipeline(late, database("ahead"), "rarely", warmUp, LATE_RANGE),
    few: await strangers(database("few"), 10, 60),
    many: await strangers(database("many"), 10_000, 1),
    alone: await free(database("alone"), null),
    beside: await free(database("beside"), short),
  }
}

try {
  const rounds: Array<Round> = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`round ${round} of ${ROUNDS}`)
    rounds.push(await runRound(round))
  }
  console.log(report(rounds, LONG.blocks))
  console.error(`statements at ${SIZES.join(" and ")} delivery rows`)
  console.log(reportStatements("9   µs a statement, by delivery rows", (await statements()).statements, SIZES))
  const onPostgres = (await statementsOnPostgres()).statements
  console.log(reportStatements("9p  the same on PostgreSQL, many rows a statement", onPostgres, SIZES))
  console.error(`dead letters: ${LETTERS.join(" and ")}`)
  console.log(reportLetters((await letters()).times, LETTERS))
  console.error("deliveries to actions")
  console.log(reportActions(await actions()))
  console.error("a chain that grows")
  console.log(reportLive(await live(true), await live(false), POLL_MS))
} finally {
  for (const chain of [long, short, late, warmUp]) chain.stop()
  await rm(folder, { recursive: true, force: true })
}
