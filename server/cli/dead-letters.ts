import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandFailed } from "./client/command-failed.ts"
import { common, each, print, send } from "./client/command.ts"
import { oneLine } from "./client/one-line.ts"
import { table } from "./client/table.ts"
import { DISCARD, DISCARD_ALL, type Letter, LIST, OFFER, REPLAY, REPLAY_ALL } from "./dead-letters/operations.ts"

const network = Flag.String("network").pipe(Flag.withDescription("The network whose dead letters are meant."))
const sink = Flag.String("sink").pipe(Flag.withDescription("Only letters to this sink."))
const monitor = Flag.String("monitor").pipe(Flag.withDescription("Only letters of this monitor."), Flag.optional)

const kinds = {
  kind: Flag.Literals("kind", ["match", "retracted"]).pipe(
    Flag.withDescription("Only letters of this kind: of matches, or of retractions."),
    Flag.optional,
  ),
  ended: Flag.Boolean("ended").pipe(
    Flag.withDescription("Only letters of matches that the chain took back; --no-ended: only of those that stand."),
    Flag.optional,
  ),
}

/** The kind as the server names it. */
const asArgument = Option.map((kind: "match" | "retracted") => kind.toUpperCase())

const filter = { network: Flag.optional(network), sink: Flag.optional(sink), monitor }

const ids = Argument.String("id").pipe(
  Argument.withDescription("Ids of letters, as the list shows them; or --network for all of a network."),
  Argument.variadic(),
)

/** What is meant: the letters that are named, or all that a filter shows. */
const target = Effect.fnUntraced(function* (
  named: ReadonlyArray<string>,
  { network, sink, monitor }: { readonly [name in "network" | "sink" | "monitor"]: Option.Option<string> },
) {
  const all = Option.isSome(network)
  if (all === named.length > 0) {
    return yield* new CommandFailed({ reason: "name either the letters by their ids, or a network by --network" })
  }
  if (!all && (Option.isSome(sink) || Option.isSome(monitor))) {
    return yield* new CommandFailed({ reason: "--sink and --monitor go with --network, not with ids" })
  }
  return all
})

const HEADING = ["ID", "DIED", "SINK", "MONITOR", "KIND", "AT", "ATTEMPTS", "REPLAY", "REASON"]

const lineOf = (letter: Letter): ReadonlyArray<string> => [
  letter.id,
  letter.createdAt,
  letter.sink,
  letter.monitor,
  letter.kind,
  `${letter.cursor.primary}:${letter.cursor.secondary}`,
  `${letter.attempts}`,
  letter.whyNot ?? "yes",
  letter.reason,
]

const list = Command.make(
  "list",
  {
    ...common,
    network,
    sink: Flag.optional(sink),
    monitor,
    ...kinds,
    first: Flag.Int("first").pipe(
      Flag.withDescription("The most letters that are shown, 1 to 1000."),
      Flag.withDefault(50),
    ),
    after: Flag.String("after").pipe(
      Flag.withDescription("Goes on behind a page, by the cursor that it ended with."),
      Flag.optional,
    ),
  },
  Effect.fnUntraced(function* ({ url, json, network, kind, first, ...rest }) {
    const variables = { network: Option.some(network), kind: asArgument(kind), first: Option.some(first), ...rest }
    const { deadLetters } = yield* send(url, LIST, variables)
    const { totalCount, pageInfo } = deadLetters
    const letters = deadLetters.edges.map(({ node }) => node)
    const more = pageInfo.hasNextPage ? `; go on with --after ${pageInfo.endCursor}` : ""
    const footer = `${letters.length} of ${totalCount} dead letters${more}`
    yield* print(
      json,
      { totalCount, ...pageInfo, deadLetters: letters },
      letters.length === 0 ? footer : `${table(HEADING, letters.map(lineOf))}\n\n${footer}`,
    )
  }),
).pipe(Command.withDescription("Lists dead letters, the oldest first."))

const replay = Command.make(
  "replay",
  {
    ...common,
    ...filter,
    ids,
    first: Flag.Int("first").pipe(
      Flag.withDescription("With --network: the most letters that are sent, 1 to 10000 (500)."),
      Flag.optional,
    ),
    after: Flag.String("after").pipe(
      Flag.withDescription(
        "With --network: only letters behind these, by the cursor that a replay or a list ended with.",
      ),
      Flag.optional,
    ),
  },
  Effect.fnUntraced(function* ({ url, json, ids: named, first, after, ...by }) {
    if (yield* target(named, by)) {
      const { replayDeadLetters: counts } = yield* send(url, REPLAY_ALL, { ...by, first, after })
      const { delivered, failed, skipped, whySkipped, endCursor } = counts
      const lines = [
        `${delivered} delivered, ${failed} failed, ${skipped} left as they were`,
        ...whySkipped.map((reason) => `left: ${oneLine(reason)}`),
        ...(endCursor === null ? [] : [`go on behind these with --after ${endCursor}`]),
      ]
      yield* print(json, counts, lines.join("\n"))
      if (failed > 0) return yield* new CommandFailed({ reason: `${failed} letters failed again; the list says why` })
      if (delivered === 0 && skipped > 0) return yield* new CommandFailed({ reason: "nothing was delivered" })
      return
    }
    yield* each(json, "letters", named, (id) =>
      Effect.map(send(url, REPLAY, { id: Option.some(id) }), ({ replayDeadLetter: { delivered, deadLetter } }) => ({
        done: delivered,
        said:
          deadLetter === null ? "delivered" : `kept after ${deadLetter.attempts} attempts in all: ${deadLetter.reason}`,
      })),
    )
  }),
).pipe(
  Command.withDescription(
    "Sends dead letters again, as their sinks are configured now: those that are named, or the oldest of a network.",
  ),
)

const discard = Command.make(
  "discard",
  { ...common, ...filter, ...kinds, ids },
  Effect.fnUntraced(function* ({ url, json, ids: named, kind, ended, ...by }) {
    if ((Option.isSome(kind) || Option.isSome(ended)) && named.length > 0) {
      return yield* new CommandFailed({ reason: "--kind and --ended go with --network, not with ids" })
    }
    if (yield* target(named, by)) {
      const { discardDeadLetters: discarded } = yield* send(url, DISCARD_ALL, { ...by, kind: asArgument(kind), ended })
      return yield* print(json, { discarded }, `${discarded} dead letters are discarded`)
    }
    yield* each(json, "letters", named, (id) =>
      Effect.as(send(url, DISCARD, { id: Option.some(id) }), { done: true, said: "discarded" }),
    )
  }),
).pipe(Command.withDescription("Gives dead letters up unsent, for good: those that are named, or all of a network."))

const offerRetractions = Command.make(
  "offer-retractions",
  { ...common, network, sink },
  Effect.fnUntraced(function* ({ url, json, network, sink }) {
    const variables = { network: Option.some(network), sink: Option.some(sink) }
    const { offerRetractions: offered } = yield* send(url, OFFER, variables)
    const owed = `${offered} retractions are owed again`
    yield* print(
      json,
      { offered },
      offered === 0
        ? owed
        : `${owed}; the sink is sent them in their turn, and what fails again is a dead letter again`,
    )
  }),
).pipe(Command.withDescription("Makes the retractions owed again that died at a sink, so that they are sent."))

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("Lists, replays and discards what a running server could not deliver."),
  Command.withSubcommands([list, replay, discard, offerRetractions]),
)
