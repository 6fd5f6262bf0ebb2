import { Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CANCEL, CANCEL_ALL, type Delivery, LIST, RESOLVE, RETRY, RETRY_ALL } from "./actions/operations.ts"
import { CommandFailed } from "./client/command-failed.ts"
import { common, each, print, send } from "./client/command.ts"
import { table } from "./client/table.ts"

const STATES = ["waiting", "running", "succeeded", "failed", "parked", "cancelled"] as const

const state = <const States extends ReadonlyArray<string>>(states: States, description: string) =>
  Flag.Literals("state", states).pipe(Flag.withDescription(description), Flag.optional)

const filter = {
  action: Flag.String("action").pipe(Flag.withDescription("Only deliveries to this action."), Flag.optional),
  store: Flag.String("store").pipe(
    Flag.withDescription("Only deliveries that this store holds: runtime, or the name of the program's own."),
    Flag.optional,
  ),
}

const after = Flag.String("after").pipe(
  Flag.withDescription("Goes on behind a page or a call, by the cursor that it ended with."),
  Flag.optional,
)

const most = Flag.Int("first").pipe(
  Flag.withDescription("Without ids: the most deliveries that are changed, 1 to 10000 (500)."),
  Flag.optional,
)

/** A state as the server names it. */
const asArgument = Option.map((name: string) => name.toUpperCase())

const HEADING = ["ID", "CAME", "ACTION", "STATE", "EVENT", "MATCH", "ATTEMPTS", "CODE", "REASON"]

const lineOf = ({ id, createdAt, action, state, event, attempts, code, reason }: Delivery): ReadonlyArray<string> => [
  id,
  createdAt,
  action,
  state,
  event.kind === "RETRACTED" ? `${event.type} retracted` : event.type,
  event.matchId === null ? "-" : event.life === 1 ? event.matchId : `${event.matchId}-${event.life}`,
  `${attempts}`,
  code ?? "-",
  reason ?? "",
]

const list = Command.make(
  "list",
  {
    ...common,
    ...filter,
    state: state(STATES, "Only deliveries in this state."),
    first: Flag.Int("first").pipe(
      Flag.withDescription("The most deliveries that are shown, 1 to 1000."),
      Flag.withDefault(50),
    ),
    after,
  },
  Effect.fnUntraced(function* ({ url, json, state, first, ...rest }) {
    const { actionDeliveries } = yield* send(url, LIST, {
      ...rest,
      state: asArgument(state),
      first: Option.some(first),
    })
    const { totalCount, pageInfo } = actionDeliveries
    const deliveries = actionDeliveries.edges.map(({ node }) => node)
    const more = pageInfo.hasNextPage ? `; go on with --after ${pageInfo.endCursor}` : ""
    const footer = `${deliveries.length} of ${totalCount} deliveries${more}`
    yield* print(
      json,
      { totalCount, ...pageInfo, deliveries },
      deliveries.length === 0 ? footer : `${table(HEADING, deliveries.map(lineOf))}\n\n${footer}`,
    )
  }),
).pipe(Command.withDescription("Lists deliveries of events to actions, the oldest first; as JSON with their calls."))

const ids = (without: string) =>
  Argument.String("id").pipe(
    Argument.withDescription(`Ids of deliveries, as the list shows them; ${without}`),
    Argument.variadic(),
  )

/** Whether those are meant that flags describe, in place of ones that are named. */
const isFilter = Effect.fnUntraced(function* (
  named: ReadonlyArray<string>,
  needed: Readonly<Record<string, Option.Option<unknown>>>,
  others: Readonly<Record<string, Option.Option<unknown>>>,
) {
  const set = (flags: typeof needed) => Object.keys(flags).filter((name) => Option.isSome(flags[name]!))
  if (named.length > 0) {
    const strange = [...set(needed), ...set(others)]
    if (strange.length === 0) return false
    return yield* new CommandFailed({ reason: `--${strange.join(" and --")} go without ids: name either of them` })
  }
  if (set(needed).length === Object.keys(needed).length) return true
  const flags = Object.keys(needed).map((name) => `--${name}`)
  return yield* new CommandFailed({
    reason: `name the deliveries by their ids, or all of some by ${flags.join(" and ")}`,
  })
})

const printMany = (
  json: boolean,
  what: string,
  outcome: { readonly changed: number; readonly skipped: number; readonly endCursor: string | null },
) => {
  const { changed, skipped, endCursor } = outcome
  const lines = [
    `${changed} ${what}, ${skipped} left as they were`,
    ...(endCursor === null ? [] : [`go on behind these with --after ${endCursor}`]),
  ]
  return print(json, outcome, lines.join("\n"))
}

const retry = Command.make(
  "retry",
  {
    ...common,
    ...filter,
    ids: ids("or --state for all in it."),
    state: state(
      ["failed", "parked", "cancelled", "waiting"],
      "Deliveries in this state; those of unknown outcome are left.",
    ),
    first: most,
    after,
  },
  Effect.fnUntraced(function* ({ url, json, ids: named, state, ...rest }) {
    if (yield* isFilter(named, { state }, rest)) {
      const { retryActionDeliveries } = yield* send(url, RETRY_ALL, { ...rest, state: asArgument(state) })
      return yield* printMany(json, "wait for a run", retryActionDeliveries)
    }
    yield* each(json, "deliveries", named, (id) =>
      Effect.as(send(url, RETRY, { id: Option.some(id) }), { done: true, said: "waits for a run" }),
    )
  }),
).pipe(
  Command.withDescription("Lets deliveries run again that are failed, parked or cancelled, with all their attempts."),
)

const resolve = Command.make(
  "resolve",
  {
    ...common,
    id: Argument.String("id").pipe(
      Argument.withDescription("The delivery's id; its code is outcome_unknown. Look at its provider first."),
    ),
    done: Flag.Boolean("done").pipe(
      Flag.withDescription("--done: the provider did what was asked; --no-done: it did not, so that the call is sent."),
      Flag.optional,
    ),
    result: Flag.String("result").pipe(
      Flag.withDescription("With --done: what the provider answered, as JSON for the operation's output (null)."),
      Flag.optional,
    ),
  },
  Effect.fnUntraced(function* ({ url, json, id, done, result }) {
    if (Option.isNone(done)) {
      return yield* new CommandFailed({ reason: "say what came of the call: --done (with its --result) or --no-done" })
    }
    if (!done.value && Option.isSome(result)) {
      return yield* new CommandFailed({ reason: "--result goes with --done; what was not done has no result" })
    }
    const parsed = Result.try(() => Option.map(result, (text) => JSON.parse(text) as unknown))
    if (Result.isFailure(parsed)) {
      return yield* new CommandFailed({
        reason: `--result is not JSON; quote it for the shell: --result '{"id": "7"}'`,
      })
    }
    yield* each(json, "deliveries", [id], () =>
      Effect.as(send(url, RESOLVE, { id: Option.some(id), done, result: parsed.success }), {
        done: true,
        said: "is resolved, and goes on",
      }),
    )
  }),
).pipe(Command.withDescription("Says what came of a call whose outcome is unknown, so that its delivery goes on."))

const cancel = Command.make(
  "cancel",
  {
    ...common,
    ...filter,
    ids: ids("or --action and --state for all of an action in it."),
    state: state(["waiting", "failed", "parked"], "With --action: its deliveries in this state."),
    first: most,
    after,
  },
  Effect.fnUntraced(function* ({ url, json, ids: named, action, state, ...rest }) {
    if (yield* isFilter(named, { action, state }, rest)) {
      const variables = { ...rest, action, state: asArgument(state) }
      const { cancelActionDeliveries } = yield* send(url, CANCEL_ALL, variables)
      return yield* printMany(json, "cancelled", cancelActionDeliveries)
    }
    yield* each(json, "deliveries", named, (id) =>
      Effect.as(send(url, CANCEL, { id: Option.some(id) }), { done: true, said: "cancelled" }),
    )
  }),
).pipe(Command.withDescription("Gives deliveries up that wait, are failed or parked."))

export const actions = Command.make("actions").pipe(
  Command.withDescription("Lists, retries, resolves and cancels deliveries to the actions of a running program."),
  Command.withSubcommands([list, retry, resolve, cancel]),
)
