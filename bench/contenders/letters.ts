import { Context, Effect, Layer } from "effect"
import { layerSqlite } from "../../core/storage/sqlite/layer.ts"
import type { LetterFilter } from "../../core/storage/dead-letter.ts"
import { type NewMatch, Storage } from "../../core/storage/storage.ts"
import { contend } from "../contender.ts"

/** Times what an operator asks of dead letters, when there are few and when there are many. */
export interface LettersTask {
  /** A database file and the number of its dead letters, for each size. */
  readonly databases: ReadonlyArray<{ readonly path: string; readonly letters: number }>
}

/** One question: µs for each size. */
export interface LetterTimes {
  readonly name: string
  readonly micros: ReadonlyArray<number>
}

const CALLS = 50
const ROUNDS = 7
const GROUP = 100
const PAGE = 50

const questions: Readonly<Record<string, Omit<LetterFilter, "network">>> = {
  "of a network": {},
  "of a sink": { sink: "sink-1" },
  "of a monitor": { monitor: "monitor-3" },
  "of a kind": { kind: "match" },
  "of retractions": { kind: "retracted" },
  "of matches that ended": { kind: "match", ended: true },
  "of matches that stand": { ended: false },
  "of a sink and a monitor": { sink: "sink-1", monitor: "monitor-3" },
}

const made = (n: number): NewMatch => ({
  id: n.toString(16).padStart(64, "0"),
  monitor: `monitor-${n % 10}`,
  revision: "r",
  cursor: { primary: n, secondary: 0 },
  time: n,
  payload: "x".repeat(300),
  sinks: [`sink-${n % 3}`],
})

const fill = Effect.fnUntraced(function* (letters: number) {
  const storage = yield* Storage
  const owner = yield* storage.claim("net", { holder: "bench", ms: 1e9, isGone: () => false })
  yield* storage.begin(owner, { primary: 0, secondary: 0 })
  for (let start = 1; start <= letters; start += GROUP) {
    const matches = Array.from({ length: GROUP }, (_, i) => made(start + i))
    const { rows } = yield* storage.mint(owner, {
      upTo: { primary: start + GROUP, secondary: 0 },
      checkpoint: null,
      anchors: [],
      matches,
      offer: new Map(),
      durable: new Set(),
      effective: [],
    })
    const outcomes = rows.map(({ seq }) => ({ seq, state: "dead", attempts: 8, reason: "transient: down" }) as const)
    yield* storage.settle(owner, { outcomes, offered: [] })
  }
  // A fork takes the newer half back, and its retractions die too.
  yield* storage.invalidate(owner, { from: { primary: letters / 2, secondary: 0 }, cause: "a fork" })
  while (!(yield* storage.retract(owner, GROUP)).done) continue
  for (const sink of yield* storage.owedSinks("net")) {
    const rows = yield* storage.owed("net", sink, { afterSeq: 0, limit: letters })
    const outcomes = rows.map(({ seq }) => ({ seq, state: "dead", attempts: 8, reason: "transient: down" }) as const)
    yield* storage.settle(owner, { outcomes, offered: [] })
  }
})

/** A page in the middle of the list, and how many there are in all. */
const ask = Effect.fnUntraced(function* (storage: Storage["Service"], filter: LetterFilter, after: number) {
  const started = performance.now()
  for (let i = 0; i < CALLS; i++) {
    yield* storage.deadLetters(filter, { after, limit: PAGE })
    yield* storage.deadLetterCount(filter)
  }
  return ((performance.now() - started) * 1000) / CALLS
})

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const measure = Effect.fnUntraced(function* ({ databases }: LettersTask) {
  const opened = yield* Effect.forEach(databases, ({ path, letters }) =>
    Effect.gen(function* () {
      const context = yield* Layer.build(layerSqlite({ path }))
      yield* fill(letters).pipe(Effect.provideContext(context))
      return { storage: Context.get(context, Storage), middle: letters / 2 }
    }),
  )
  const times: Array<LetterTimes> = []
  for (const [name, filter] of Object.entries(questions)) {
    const rounds: Array<ReadonlyArray<number>> = []
    for (let round = 0; round < ROUNDS; round++) {
      rounds.push(
        yield* Effect.forEach(opened, ({ storage, middle }) => ask(storage, { network: "net", ...filter }, middle)),
      )
    }
    times.push({ name, micros: opened.map((_, size) => median(rounds.map((round) => round[size]!))) })
  }
  return { times }
})

await contend((task: LettersTask) => Effect.runPromise(Effect.scoped(measure(task))))
