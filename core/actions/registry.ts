import { Effect } from "effect"
import { matchType } from "../storage/events.ts"
import type { Action, Subscription } from "./action.ts"
import { DefinitionInvalid } from "./definition-invalid.ts"
import { type Reader, readerOf } from "./payload.ts"

/** How an action reads events of one type. */
export interface Subscribed {
  readonly subscription: Subscription
  readonly read: Reader
}

/** The actions of a program, and what they are subscribed to. */
export interface Registry {
  readonly actions: ReadonlyMap<string, Action>
  /** The actions that get events of this type. */
  readonly subscribers: (type: string) => ReadonlyArray<string>
  /** How an action reads events of a type; undefined if it does not get them. */
  readonly subscribed: (action: string, type: string) => Subscribed | undefined
}

/** The type of the events that a subscription brings. */
export const typeOf = (subscription: Subscription): string =>
  subscription.kind === "event" ? subscription.name : matchType(subscription.monitor)

const add = (map: Map<string, Array<string>>, key: string, name: string): void => {
  map.set(key, [...(map.get(key) ?? []), name])
}

/** Puts the actions of a program together. */
export const makeRegistry = Effect.fnUntraced(function* (
  all: ReadonlyArray<Action>,
): Effect.fn.Return<Registry, DefinitionInvalid> {
  const names = all.map(({ name }) => name)
  const twice = names.filter((name, i) => names.indexOf(name) < i)
  if (twice.length > 0) {
    return yield* new DefinitionInvalid({
      what: "the set of actions",
      problems: twice.map((name) => ({
        path: name,
        message: "is the name of two actions; deliveries are told apart by it",
      })),
    })
  }
  const read = new Map(
    all.map(({ name, on }) => [
      name,
      new Map(on.map((subscription) => [typeOf(subscription), { subscription, read: readerOf(subscription) }])),
    ]),
  )
  const subscribers = new Map<string, Array<string>>()
  for (const { name, on } of all) {
    for (const subscription of on) {
      add(subscribers, typeOf(subscription), name)
    }
  }
  return {
    actions: new Map(all.map((action) => [action.name, action])),
    subscribers: (type) => subscribers.get(type) ?? [],
    subscribed: (action, type) => read.get(action)?.get(type),
  }
})
