import { Effect } from "effect"
import { endOf } from "../../../../core/model/cursor.ts"
import type { Choices } from "../../../system/seed.ts"
import { BLOCKS, MONITORS, NETWORKS, REFUSING, SINKS, type World } from "./world.ts"

interface Failure {
  readonly _tag: string
  readonly message: string
}

/** A change that an operator makes. */
export interface Mutation {
  /** In words, for whoever reads of a failure. */
  readonly name: string
  readonly run: (world: World) => Effect.Effect<unknown, Failure>
  /** What it gives up: whether that was heard of before depends on the moment. */
  readonly discards: string | null
  /** Set when it is done to each dead letter of `REFUSING` by itself, with other changes before, between and behind. */
  readonly eachLetter?: true
}

const pick = <A>(random: Choices, values: ReadonlyArray<A>): A => values[random.between(0, values.length - 1)]!

/** The revision of a resource when the race begins, or another one. */
type Revisions = ReadonlyMap<string, string>

export const revisionsOf = ({ resources }: World): Effect.Effect<Revisions, Failure> =>
  Effect.map(Effect.all([resources.networks, resources.monitors, resources.sinks]), (kinds) => {
    const entries = kinds.flatMap((views): ReadonlyArray<{ id: string; revision: string }> => [...views])
    return new Map(entries.map(({ id, revision }) => [id, revision]))
  })

const drawIds = (random: Choices) => ({
  network: pick(random, NETWORKS),
  monitor: pick(random, MONITORS),
  sink: pick(random, SINKS),
})

/** What the mutations of a pair are mostly about, so that they meet. */
export const drawFocus = drawIds

/** How many kinds of mutations there are. */
export const KINDS = 14

/** Draws a mutation of a kind. `revisions`: those that an `ifRevision` may name. */
export const drawMutation = (
  random: Choices,
  kind: number,
  focus: ReturnType<typeof drawFocus>,
  revisions: Revisions,
): Mutation => {
  const discard = random.chance(0.5)
  const { network, monitor, sink } = random.chance(0.85) ? focus : drawIds(random)
  const ifRevisionOf = (id: string) => {
    const revision = revisions.get(id)
    return random.chance(0.3) && revision !== undefined ? { ifRevision: revision } : {}
  }
  const put = (
    kind: "putNetwork" | "putMonitor" | "putSink",
    definition: { readonly id: string } & Readonly<Record<string, unknown>>,
  ): Mutation => {
    const options = ifRevisionOf(definition.id)
    return {
      name: `${kind} ${JSON.stringify(definition)} ${JSON.stringify(options)}`,
      run: ({ resources }) => Effect.asVoid(resources[kind](definition, options) as Effect.Effect<unknown, Failure>),
      discards: null,
    }
  }
  const remove = (kind: "deleteNetwork" | "deleteMonitor" | "deleteSink", id: string): Mutation => ({
    name: `${kind} ${id}${discard ? " with discard" : ""}`,
    run: ({ resources }) => resources[kind](id, { discard }),
    discards: discard ? id : null,
  })
  const act = (name: string, run: Mutation["run"]): Mutation => ({ name, run, discards: null })
  const filter = random.chance(0.5) ? { sink } : {}
  const ofSink = filter.sink === undefined ? "" : ` of ${filter.sink}`
  const refusing = random.chance(0.8) ? REFUSING : sink
  const to = endOf(random.between(0, BLOCKS + 1))
  const kinds: ReadonlyArray<() => Mutation> = [
    () => put("putNetwork", { id: network, module: "scripted", config: { range: random.between(20, 22) } }),
    () => remove("deleteNetwork", network),
    () => act(`pauseNetwork ${network}`, ({ resources }) => resources.pauseNetwork(network)),
    () => act(`resumeNetwork ${network}`, ({ resources }) => resources.resumeNetwork(network)),
    () => act(`rewindNetwork ${network} to ${to.primary}`, ({ resources }) => resources.rewindNetwork(network, to)),
    () =>
      put("putMonitor", {
        id: monitor,
        network,
        selector: { name: pick(random, ["Transfer", "Other"]) },
        predicate: pick(random, [null, "args.value % 2 == 0"]),
        sinks: SINKS.filter((id) => random.chance(id === focus.sink ? 0.8 : 0.3)),
        enabled: random.chance(0.8),
      }),
    () => remove("deleteMonitor", monitor),
    () =>
      put("putSink", {
        id: sink,
        module: `host:${sink}`,
        config: {},
        retry: { maxAttempts: random.between(3, 5), initialBackoffMs: 1, maxBackoffMs: 2 },
      }),
    () => remove("deleteSink", sink),
    () => act(`pauseSink ${sink}`, ({ resources }) => resources.pauseSink(sink)),
    () => act(`resumeSink ${sink}`, ({ resources }) => resources.resumeSink(sink)),
    () => ({
      ...act(`replayDeadLetters ${network}${ofSink}`, ({ letters }) => letters.replayAll({ network, ...filter }, 100)),
      eachLetter: true,
    }),
    () => ({
      ...act(`discardDeadLetters ${network}${ofSink}`, ({ letters }) => letters.discardAll({ network, ...filter })),
      eachLetter: true,
    }),
    () => act(`offerRetractions ${network} ${refusing}`, ({ letters }) => letters.offerRetractions(network, refusing)),
  ]
  return kinds[kind]!()
}

// A network that was just rewound reads on: its checkpoint soon lies where it lay.
const again = (failure: Failure) => /try again|cannot be rewound to .*: its checkpoint is/.test(failure.message)

/** Runs a mutation as an operator does, who tries again what is to be tried again; answers `ok` or the error's tag. */
export const outcomeOf = ({ run }: Mutation, world: World): Effect.Effect<string> =>
  Effect.suspend(() => run(world)).pipe(
    Effect.tapError((failure) => (again(failure) ? Effect.sleep("3 millis") : Effect.void)),
    Effect.retry({ while: again, times: 1_000 }),
    Effect.match({ onSuccess: () => "ok", onFailure: ({ _tag }) => _tag }),
  )
