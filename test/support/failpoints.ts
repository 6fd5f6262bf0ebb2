import { writeSync } from "node:fs"
import { Effect, Layer, Stream } from "effect"
import type { SinkPlugin } from "../../core/plugin/sink.ts"
import type { SourceBatch, SourcePlugin } from "../../core/plugin/source.ts"
import { Storage } from "../../core/storage/storage.ts"

type Operation = keyof Storage["Service"]

/** The durable steps that each operation of the storage takes: none where it reads. */
export const stepsOf: Readonly<Record<Operation, ReadonlyArray<string>>> = {
  database: [],
  orm: [],
  resources: [],
  resourcesVersion: [],
  change: ["change"],
  seeds: [],
  claim: ["claim"],
  renew: ["renew"],
  release: ["release"],
  pipeline: [],
  begin: ["begin"],
  mint: ["mint"],
  mintLate: ["mintLate"],
  settle: ["offer", "settle"],
  checkpoint: ["checkpoint"],
  pause: ["pause"],
  invalidate: ["invalidate"],
  invalidation: [],
  retract: ["retract"],
  rewind: ["rewind"],
  owed: [],
  openSlots: [],
  owedSinks: [],
  debts: [],
  anchors: [],
  records: [],
  emitOwed: ["emitOwed"],
  newEvents: [],
  matchState: [],
  prune: ["prune"],
  feedPage: [],
  feedGrowth: [],
  feedStates: [],
  deadLetters: [],
  deadLetterCount: [],
  deadLettersBetween: [],
  deadLetter: [],
  isRetractionOwed: [],
  deadLetterCounts: [],
  replayed: ["replayed"],
  discard: ["discard"],
  offerRetractions: ["offerRetractions"],
  oldestOwed: [],
  countOwed: [],
}

/** What an operator asks for, or a program with actions does: no flow of a chain takes these steps by itself. */
export const onRequest: ReadonlySet<string> = new Set(["replayed", "discard", "offerRetractions", "emitOwed"])

/** Every durable step, and the attempt of a sink between two of them. */
export const steps: ReadonlyArray<string> = [...Object.values(stepsOf).flat(), "deliver"]

/** What becomes of a process at its point: SIGKILL, SIGSTOP, or the fiber that passes it goes no further. */
export type Fate = "kill" | "freeze" | "hang"

/** Where a process meets its fate: at the n-th passing of a point, which is `<step>:before` or `<step>:after`. */
export interface Failpoint {
  readonly point: string
  /** Counts from 1, and from when the failpoint was set. */
  readonly passing: number
  readonly fate: Fate
}

/** What a process writes to its standard error when its failpoint is set, and when it comes to it. */
export const news = {
  set: ({ point, passing, fate }: Failpoint): string => `failpoint set: ${point} ${passing} ${fate}`,
  reached: ({ point, passing, fate }: Failpoint): string => `failpoint reached: ${point} ${passing} ${fate}`,
}

/** At once, for what is written later may never leave the process. */
const tell = (text: string) => writeSync(2, `${text}\n`)

const meet: Readonly<Record<Fate, Effect.Effect<void>>> = {
  kill: Effect.sync(() => process.kill(process.pid, "SIGKILL")),
  freeze: Effect.sync(() => process.kill(process.pid, "SIGSTOP")),
  hang: Effect.never,
}

/** Decorates the parts of a server, so that it comes to the failpoint that is set. */
export const makeFailpoints = () => {
  let failpoint: Failpoint | null = null
  let passed = 0

  const pass = (point: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (failpoint === null || point !== failpoint.point || ++passed !== failpoint.passing) return Effect.void
      tell(news.reached(failpoint))
      return meet[failpoint.fate]
    })

  const around = <A, E, R>(present: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.forEach(present, (step) => pass(`${step}:before`), { discard: true }).pipe(
      Effect.andThen(effect),
      Effect.tap(() => Effect.forEach(present, (step) => pass(`${step}:after`), { discard: true })),
    )

  /** The one operation that takes one of two steps, or both. */
  const settle =
    (storage: Storage["Service"]): Storage["Service"]["settle"] =>
    (owner, input) => {
      const offers = input.offered.length + (input.digests ?? []).length
      const taken = (step: string) => (step === "offer" ? offers : input.outcomes.length) > 0
      return around(stepsOf.settle.filter(taken), storage.settle(owner, input))
    }

  const decorate = (storage: Storage["Service"]): Storage["Service"] => {
    const writes = Object.entries(storage).flatMap(([operation, call]) => {
      const taken = stepsOf[operation as Operation]
      return taken.length === 0
        ? []
        : [[operation, (...args: ReadonlyArray<any>) => around(taken, (call as any)(...args))] as const]
    })
    return { ...storage, ...Object.fromEntries(writes), settle: settle(storage) }
  }

  return {
    set: (next: Failpoint): void => {
      failpoint = next
      passed = 0
      tell(news.set(next))
    },
    /** Comes to a point of any name. */
    pass,
    storage: <E>(layer: Layer.Layer<Storage, E>): Layer.Layer<Storage, E> =>
      Layer.effect(Storage, Effect.map(Storage, decorate)).pipe(Layer.provide(layer)),
    sink: (plugin: SinkPlugin): SinkPlugin => ({
      ...plugin,
      make: (config) =>
        Effect.map(plugin.make(config), (sink) => ({
          ...sink,
          deliver: (...args) => around(["deliver"], sink.deliver(...args)),
        })),
    }),
  }
}

/** How far back, in primaries, a source looks again for what it left out. */
const LOOK_BACK = 30

/** Between two such looks, in ms. */
const LOOK_AGAIN_MS = 50

/**
 * A source that leaves out the last event of each piece and finds it late: right after the piece, and for all of the
 * newest primaries when it begins again.
 */
export const lateFinding = (plugin: SourcePlugin): SourcePlugin => ({
  ...plugin,
  make: (config) =>
    Effect.map(plugin.make(config), (source) => ({
      ...source,
      run: Effect.fnUntraced(function* (run) {
        const { cursor, anchors } = run.resume
        const recorded = new Map(anchors.map(({ primary, hash }) => [primary, hash]))
        const interests = yield* run.interests
        /** Looks once; answers whether it saw the fork that the network is on. */
        const look = Effect.suspend(() => {
          let proven = true
          return Stream.runForEach(
            source.scan({ from: Math.max(1, cursor.primary - LOOK_BACK), to: cursor.primary, interests }),
            (batch) => {
              proven &&= batch.resume.every(({ primary, hash }) => (recorded.get(primary) ?? hash) === hash)
              return run.late(batch)
            },
          ).pipe(Effect.match({ onFailure: () => false, onSuccess: () => proven }))
        })
        const lookAll: Effect.Effect<never> = Effect.flatMap(look, (proven) =>
          proven ? Effect.never : Effect.andThen(Effect.sleep(LOOK_AGAIN_MS), lookAll),
        )
        const emit = (batch: SourceBatch) =>
          Effect.andThen(run.emit({ ...batch, events: batch.events.slice(0, -1) }), run.late(batch))
        return yield* Effect.raceFirst(source.run({ ...run, emit }), lookAll)
      }),
    })),
})
