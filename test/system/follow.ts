import { Effect, type Scope } from "effect"
import { type GraphqlError, subscribe } from "../support/graphql.ts"
import { waitUntil } from "../support/process.ts"

/** A subscription that is read as fast as it goes. */
export interface Following<Item> {
  /** What arrived so far. */
  readonly items: ReadonlyArray<Item>
  /** Why it ended by itself: the errors of the operation, or what broke the connection. */
  readonly failure: () => unknown
  readonly waitFor: (what: string, condition: (items: ReadonlyArray<Item>) => boolean) => Effect.Effect<void>
  readonly close: Effect.Effect<void>
}

/** Reads the items that one field of a subscription's answers holds. */
type Follow = <Item>(
  url: string,
  query: string,
  variables?: Readonly<Record<string, unknown>>,
) => Effect.Effect<Following<Item>, never, Scope.Scope>

type Answer = Readonly<Record<string, unknown>>

const following = <Item>(next: () => Promise<Answer>, end: () => Promise<void>) =>
  Effect.acquireRelease(
    Effect.sync((): Following<Item> => {
      const items: Array<Item> = []
      let failure: unknown
      const read = async () => {
        for (;;) items.push(Object.values(await next())[0] as Item)
      }
      read().catch((error: unknown) => {
        failure = error
      })
      return {
        items,
        failure: () => failure,
        waitFor: (what, condition) =>
          waitUntil(what, () => {
            if (condition(items)) return true
            if (failure !== undefined) throw new Error(`${what}: it ended`, { cause: failure })
            return false
          }),
        close: Effect.promise(end),
      }
    }),
    ({ close }) => close,
  )

/** Subscribes over a WebSocket. */
export const followOverWebSocket: Follow = (url, query, variables = {}) =>
  Effect.suspend(() => {
    const { next, close } = subscribe<Answer>(url, query, variables)
    return following(next, close)
  })

/** Subscribes over server-sent events. */
export const followOverSse: Follow = (url, query, variables = {}) =>
  Effect.suspend(() => {
    const abort = new AbortController()
    const answers = eventsOf(url, { query, variables }, abort.signal)
    return following(
      async () => {
        const { value, done } = await answers.next()
        if (done === true) throw new Error("the stream ended")
        return value
      },
      async () => abort.abort(),
    )
  })

async function* eventsOf(url: string, operation: object, signal: AbortSignal): AsyncGenerator<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify(operation),
    signal,
  })
  let text = ""
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const events = text.split("\n\n")
    text = events.pop()!
    for (const event of events) {
      const data = /^data: (.+)$/m.exec(event)?.[1]
      if (!event.startsWith("event: next") || data === undefined) continue
      const { data: answer, errors } = JSON.parse(data) as { data: Answer; errors?: ReadonlyArray<GraphqlError> }
      if (errors !== undefined) throw errors
      yield answer
    }
  }
}
