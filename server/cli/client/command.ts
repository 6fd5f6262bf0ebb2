import { Console, Effect, Option, type Schema } from "effect"
import { Flag } from "effect/cli"
import { readAddress } from "./address.ts"
import { CommandFailed } from "./command-failed.ts"
import { oneLine } from "./one-line.ts"

/** The flags of every command that asks a running server. */
export const common = {
  url: Flag.String("url").pipe(
    Flag.withDescription(
      "The server's GraphQL; unless given, as BLOCKWATCHER_HOST and BLOCKWATCHER_PORT say (http://127.0.0.1:4000/graphql). Its token is read from BLOCKWATCHER_API_TOKEN.",
    ),
    Flag.optional,
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Prints JSON."), Flag.withDefault(false)),
}

/** An operation of the server: its text, and the shape of what it answers. */
export interface Operation<S extends Schema.Codec<any, any> = Schema.Codec<any, any>> {
  readonly query: string
  readonly shape: S
}

export const operation = <S extends Schema.Codec<any, any>>(query: string, shape: S): Operation<S> => ({ query, shape })

/** Asks the server; variables that are not set are left out. */
export const send = Effect.fnUntraced(function* <S extends Schema.Codec<any, any>>(
  url: Option.Option<string>,
  { query, shape }: Operation<S>,
  variables: Readonly<Record<string, Option.Option<unknown>>>,
) {
  const address = yield* readAddress(url)
  // The client takes a while to load, which the help text need not wait for.
  const { ask } = yield* Effect.promise(() => import("./ask.ts"))
  const set = Object.entries(variables).flatMap(([name, value]) => (Option.isSome(value) ? [[name, value.value]] : []))
  return yield* ask(address, { query, variables: Object.fromEntries(set) }, shape)
})

export const print = (json: boolean, value: unknown, text: string) =>
  Console.log(json ? JSON.stringify(value, null, 2) : text)

/**
 * Does the same to each of what is named: what fails for one says nothing of the next. Fails at the end if it did not go well
 * for all.
 *
 * @param what they are, in the plural
 */
export const each = Effect.fnUntraced(function* <E, R>(
  json: boolean,
  what: string,
  ids: ReadonlyArray<string>,
  act: (id: string) => Effect.Effect<{ readonly done: boolean; readonly said: string }, E | CommandFailed, R>,
) {
  const results = yield* Effect.forEach(ids, (id) =>
    act(id).pipe(
      Effect.catchIf(
        (error) => error instanceof CommandFailed,
        ({ reason }) => Effect.succeed({ done: false, said: reason }),
      ),
      Effect.map(({ done, said }) => ({ id, done, said })),
    ),
  )
  yield* print(json, results, results.map(({ id, said }) => oneLine(`${id}: ${said}`)).join("\n"))
  const failed = results.filter(({ done }) => !done).length
  if (failed > 0) return yield* new CommandFailed({ reason: `it failed for ${failed} of ${results.length} ${what}` })
})
