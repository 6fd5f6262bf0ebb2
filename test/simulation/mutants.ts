import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { DeliveryError, Delivery, SinkEvent, Storage } from "../../core/index.ts"
import type { SourceRecord } from "../../core/plugin/source.ts"
import type { DeliveryRow, NewMatch, Owner } from "../../core/storage/storage.ts"
import type { Life } from "./life.ts"
import type { Event } from "./schedule.ts"
import type { networkDefinition } from "./setup.ts"
import type { World } from "./world.ts"

type Service = Storage["Service"]
type Deliver = (event: SinkEvent, delivery: Delivery) => Effect.Effect<void, DeliveryError>

type NodesConfig = Parameters<typeof networkDefinition>[0]

/** Breaks one rule of the runtime, in the layers that a test can put around it. */
export interface Mutant {
  readonly name: string
  /** What is wrong when the rule is broken: no other violation counts. */
  readonly shows: RegExp
  /** Its worlds have rounds of these kinds alone, since it hardly shows in others. */
  readonly about?: ReadonlySet<Event["_tag"]>
  /** It is a rule about several nodes, and shows only in their worlds. */
  readonly needsProviders?: boolean
  /** It takes half a minute to show itself, so that only a soak looks for it. */
  readonly isSlow?: boolean
  /** What the network's config says of its nodes. */
  readonly nodes?: (config: NodesConfig) => NodesConfig
  readonly storage?: (storage: Service, life: Life, world: World) => Partial<Service>
  readonly sink?: (deliver: Deliver, sink: string, world: World) => Deliver
}

/** A value for each world, made when it is first asked for. */
const perWorld = <A>(make: () => A): ((world: World) => A) => {
  const values = new WeakMap<World, A>()
  return (world) => {
    const value = values.get(world) ?? make()
    values.set(world, value)
    return value
  }
}

const lateOutcomes: Mutant = {
  name: "an outcome is written after the checkpoint that rests on it",
  about: new Set(["Crash"]),
  shows: /is sent, behind the checkpoint/,
  storage: ({ settle }, life) => ({
    settle: (owner, input) =>
      input.outcomes.length === 0
        ? settle(owner, input)
        : Effect.sleep(100).pipe(
            Effect.andThen(Effect.suspend(() => (life.isDead ? Effect.void : settle(owner, input)))),
            Effect.ignore,
            Effect.forkDetach,
            Effect.asVoid,
          ),
  }),
}

const neverOffered: Mutant = {
  name: "a row is not marked offered before its attempt",
  shows: /is held$|not canonical|came in life/,
  storage: ({ settle, mint }) => ({
    settle: (owner, input) => settle(owner, { ...input, offered: [] }),
    mint: (owner, input) => mint(owner, { ...input, offer: new Map() }),
  }),
}

const hastyCheckpoint: Mutant = {
  name: "the checkpoint passes an open slot",
  shows: /is sent, behind the checkpoint/,
  storage: ({ checkpoint, pipeline }) => ({
    checkpoint: (owner, cursor) =>
      Effect.flatMap(pipeline(owner.network), (row) => checkpoint(owner, row?.minted ?? cursor)),
  }),
}

const lateRetractions: Mutant = {
  name: "a retraction comes after a replacement",
  shows: /is held$/,
  sink: (deliver) => {
    let waiting: Effect.Effect<unknown, DeliveryError> = Effect.void
    return (event, delivery) => {
      if (event.type === "retracted") {
        waiting = Effect.andThen(waiting, deliver(event, delivery))
        return Effect.void
      }
      return Effect.andThen(
        deliver(event, delivery),
        Effect.suspend(() => {
          const told = waiting
          waiting = Effect.void
          return Effect.ignore(told)
        }),
      )
    }
  },
}

const oneLife: Mutant = {
  name: "a life is not counted",
  shows: /came after its retraction/,
  storage: ({ mint, owed }) => {
    const firstLife = <R extends { readonly life: number }>(row: R): R => ({ ...row, life: 1 })
    return {
      mint: (owner, input) =>
        Effect.map(mint(owner, input), (minted) => ({ ...minted, rows: minted.rows.map(firstLife) })),
      owed: (network, sink, page) => Effect.map(owed(network, sink, page), (rows) => rows.map(firstLife)),
    }
  },
}

const newestEpoch = perWorld(() => ({ epoch: 0 }))

const staleWrites: Mutant = {
  name: "a write of an owner that was replaced is let in",
  about: new Set(["TakeOver"]),
  shows: /is held$|not canonical|came behind|lost:|is sent, behind the checkpoint/,
  storage: ({ claim, mint, settle, checkpoint, retract, rewind, invalidate }, _, world) => {
    const newest = newestEpoch(world)
    const present = <O extends { readonly epoch: number }>(owner: O): O => ({ ...owner, epoch: newest.epoch })
    return {
      claim: (network, lease) =>
        Effect.tap(claim(network, lease), ({ epoch }) => Effect.sync(() => void (newest.epoch = epoch))),
      mint: (owner, input) => mint(present(owner), input),
      settle: (owner, input) => settle(present(owner), input),
      checkpoint: (owner, cursor) => checkpoint(present(owner), cursor),
      retract: (owner, limit, terms) => retract(present(owner), limit, terms),
      rewind: (owner, depth) => rewind(present(owner), depth),
      invalidate: (owner, what) => invalidate(present(owner), what),
    }
  },
}

const consumedEarly: Mutant = {
  name: "hits are consumed outside the transaction of their emission",
  shows: /lost: (burst|crowd|once)/,
  storage: ({ mint, settle }, _, world) => ({
    // As if the emission's rows were in memory alone.
    mint: (owner, input) =>
      Effect.tap(mint(owner, input), ({ rows }) => {
        const outcomes = rows
          .filter(({ monitor }) => world.gated.has(monitor))
          .map(({ seq }) => ({ seq, state: "delivered", attempts: 1, reason: null }) as const)
        return outcomes.length === 0 ? Effect.void : settle(owner, { outcomes, offered: [] })
      }),
  }),
}

const lastHit = perWorld((): { match: NewMatch | null } => ({ match: null }))

const countedTwice: Mutant = {
  name: "a hit that is recorded again counts again",
  shows: /(came with|not canonical:.*,) (burst|crowd) /,
  storage: ({ mint }, _, world) => {
    const last = lastHit(world)
    let isFirst = true
    return {
      mint: (owner, input) => {
        const hits = input.matches.filter(({ gate }) => gate?.gate.type === "threshold")
        const again = isFirst && hits.length > 0 ? last.match : null
        if (hits.length > 0) isFirst = false
        last.match = hits.at(-1) ?? last.match
        if (again === null) return mint(owner, input)
        const id = createHash("sha256").update(again.id).digest("hex")
        return mint(owner, { ...input, matches: [{ ...again, id }, ...input.matches] })
      },
    }
  },
}

const leftStanding: Mutant = {
  name: "members of an emission below the fork are not taken back",
  shows: /not canonical:.*, (burst|crowd) /,
  storage: ({ invalidate, owed, settle, mint }, _, world) => {
    const blockOf = ({ sink, matchId }: DeliveryRow) => world.receivers.get(sink)?.known.get(matchId)?.block
    let from = 0
    let owner: Owner | null = null
    return {
      mint: (by, input) => {
        owner = by
        return mint(by, input)
      },
      invalidate: (by, what) => {
        owner = by
        from = what.from.primary
        return invalidate(by, what)
      },
      owed: (network, sink, page) =>
        Effect.gen(function* () {
          while (true) {
            const rows = yield* owed(network, sink, page)
            const below = rows.filter((row) => row.kind === "retracted" && (blockOf(row) ?? Infinity) <= from)
            if (below.length === 0 || owner === null) return rows
            const outcomes = below.map(({ seq }) => ({ seq, state: "delivered", attempts: 1, reason: null }) as const)
            yield* Effect.ignore(settle(owner, { outcomes, offered: [] }))
          }
        }),
    }
  },
}

const replayedAfterRetraction: Mutant = {
  name: "a letter is sent again after its retraction",
  about: new Set(["Chain", "Crash", "PauseSink", "Letters"]),
  shows: /came after its retraction/,
  storage: ({ deadLetter, deadLetters }) => ({
    deadLetter: (network, seq) =>
      Effect.map(deadLetter(network, seq), (letter) => letter && { ...letter, ended: false }),
    deadLetters: (filter, page) => {
      const { ended: _, ...withEnded } = filter
      return Effect.map(deadLetters(withEnded, page), (letters) => letters.map((it) => ({ ...it, ended: false })))
    },
  }),
}

const lateDropped: Mutant = {
  name: "a late find is dropped",
  shows: /lost: .*, which a node left out/,
  needsProviders: true,
  storage: ({ mintLate }) => ({ mintLate: (owner, input) => mintLate(owner, { ...input, matches: [] }) }),
}

const everRecorded = perWorld(() => new Map<string, SourceRecord>())

const childrenStay: Mutant = {
  name: "contracts of a factory are not taken back",
  shows: /not canonical:.*, children/,
  needsProviders: true,
  storage: ({ mint, records }, _, world) => {
    const recorded = everRecorded(world)
    return {
      mint: (owner, input) => {
        for (const { key, value } of input.forget ?? []) recorded.delete(`${key} ${value}`)
        for (const record of input.records ?? []) recorded.set(`${record.key} ${record.value}`, record)
        return mint(owner, input)
      },
      records: (network, page) =>
        page.after === null
          ? Effect.as(records(network, page), [...recorded.values()])
          : Effect.as(records(network, page), []),
    }
  },
}

const leftOutBelieved: Mutant = {
  name: "what a node leaves out is believed not to be",
  shows: lateDropped.shows,
  needsProviders: true,
  isSlow: true,
  nodes: ({ urls, ...rest }) => {
    const { audit: _, ...config } = rest as Record<string, unknown>
    return { urls, ...config }
  },
}

const oneNode: Mutant = {
  name: "no other node is asked when one fails",
  shows: /is not current although a node is well|although that never left the chain/,
  needsProviders: true,
  isSlow: true,
  nodes: ({ urls, ...rest }) => ({ urls: urls.slice(0, 1), ...rest }),
}

export const MUTANTS: ReadonlyArray<Mutant> = [
  lateOutcomes,
  neverOffered,
  hastyCheckpoint,
  consumedEarly,
  lateRetractions,
  countedTwice,
  leftStanding,
  oneLife,
  staleWrites,
  replayedAfterRetraction,
  lateDropped,
  childrenStay,
  leftOutBelieved,
  oneNode,
]
