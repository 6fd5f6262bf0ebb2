import type { EntityManager } from "@mikro-orm/core"
import { type Effect, Result, type Scope } from "effect"
import { Retry } from "../model/policy.ts"
import type { Problem } from "../model/problem.ts"
import { under } from "../model/problem.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import { nameProblems, refuseInvalid } from "./definition-invalid.ts"
import type { EmittedEvent, EventType } from "./event-type.ts"
import type { InvalidPayload } from "./invalid-payload.ts"
import type { MatchEvent, MatchOf } from "./match.ts"
import type { MatchStates } from "./match-states.ts"
import type { Operation } from "./provider.ts"

/** What an action can be subscribed to. */
export type Subscription = EventType<any, any> | MatchOf<any>

/** The event that a subscription brings. */
export type EventOf<S> =
  S extends EventType<infer Name, infer A> ? EmittedEvent<Name, A> : S extends MatchOf<infer A> ? MatchEvent<A> : never

/** Operations, by the name that the action calls them by. */
export type Operations = Readonly<Record<string, Operation>>

/** Declared operations as an action calls them. */
export type Calls<Ops extends Operations> = {
  readonly [Name in keyof Ops]: Ops[Name] extends Operation<infer In, infer Out, infer E, infer R>
    ? (input: In) => Effect.Effect<Out, E, R>
    : never
}

/** What an action works with. */
export interface ActionContext<On = Subscription, Ops extends Operations = Operations> {
  readonly event: EventOf<On>
  /** Whom the event belongs to; null: to nobody, the action sees everything. */
  readonly tenant: string | null
  /**
   * The program's entities. What is persisted, changed or removed is written when `run` has succeeded, in one transaction
   * with the emitted events: nothing can be flushed or written past it, and no transaction is open meanwhile. An entity
   * that is changed needs a version property, by which a change of someone else is seen; then `run` runs again.
   */
  readonly em: EntityManager
  /** Emits an event that commits with the writes. It belongs to the tenant of this event. */
  readonly emit: <Name extends string, A>(
    type: EventType<Name, A>,
    payload: A,
    options?: {
      /** Whom it belongs to, if this event belongs to nobody. */
      readonly tenant?: string
    },
  ) => Effect.Effect<void, InvalidPayload>
  readonly matches: MatchStates
  /** The declared operations. They go one after another, each is recorded, and a rerun gets what was recorded. */
  readonly calls: Calls<Ops>
}

/** A handler of the embedding program that runs once per event, with its writes in one transaction. */
export interface Action<E = any, R = any> {
  readonly name: string
  readonly on: ReadonlyArray<Subscription>
  readonly calls: Operations
  readonly retry: Retry
  /** The longest that one run may take, in ms. */
  readonly timeoutMs: number
  readonly run: (context: ActionContext<any, any>) => Effect.Effect<unknown, E, R>
}

/** What an action needs of the program, besides the scope of its run. */
export type Requirements<A extends Action> = A extends Action<any, infer R> ? Exclude<R, Scope.Scope> : never

const TIMEOUT_MS = 30_000
/** An hour: what takes longer is a process of its own. */
const MAX_TIMEOUT_MS = 3_600_000

/** Actions. */
export const Action = {
  /** Defines an action. Throws `DefinitionInvalid` with all that is wrong. */
  make: <
    const On extends Subscription | ReadonlyArray<Subscription>,
    E,
    R,
    const Ops extends Operations = {},
  >(definition: {
    /** Stored with each delivery: another name is another action. */
    readonly name: string
    readonly on: On
    readonly calls?: Ops
    /** How often a run that fails is tried; 8 attempts with delays of up to 30 s unless set. */
    readonly retry?: Partial<Retry>
    /** 30 s unless set, at most an hour. */
    readonly timeoutMs?: number
    readonly run: (
      context: ActionContext<On extends ReadonlyArray<infer One> ? One : On, Ops>,
    ) => Effect.Effect<unknown, E, R>
  }): Action<E, R> => {
    const { name, run, timeoutMs = TIMEOUT_MS } = definition
    const on: ReadonlyArray<Subscription> = Array.isArray(definition.on) ? definition.on : [definition.on]
    const calls: Operations = definition.calls ?? {}
    const retry = decodeConfig(Retry, definition.retry ?? {})
    const problems: Array<Problem> = [...nameProblems(name), ...onProblems(on), ...callProblems(calls)]
    if (Result.isFailure(retry)) problems.push(...under("retry", retry.failure))
    if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS) {
      problems.push({
        path: "timeoutMs",
        message: `must be an integer between 1 and ${MAX_TIMEOUT_MS} (an hour in ms)`,
      })
    }
    refuseInvalid(`action "${name}"`, problems)
    return { name, on, calls, retry: Result.getOrThrow(retry), timeoutMs, run }
  },
}

const onProblems = (on: ReadonlyArray<Subscription>): ReadonlyArray<Problem> => {
  if (on.length === 0) return [{ path: "on", message: "must be an event type, a Match.of, or several; it is empty" }]
  const names = on.map((one) => (one.kind === "event" ? `event type "${one.name}"` : `matches of "${one.monitor}"`))
  return names
    .filter((name, i) => names.indexOf(name) < i)
    .map((name) => ({ path: "on", message: `holds ${name} twice; leave one out` }))
}

const callProblems = (calls: Operations): ReadonlyArray<Problem> => {
  const changing = Object.entries(calls).filter(([, { repeat }]) => repeat !== "safe")
  const never = changing.filter(([, { repeat }]) => repeat === "never")
  if (never.length === 0 || changing.length === 1) return []
  const others = changing.map(([name]) => name).join(", ")
  return never.map(([name]) => ({
    path: `calls.${name}`,
    message:
      `may never be repeated, so it must be the only call of this action that changes anything, not one of ${others}; ` +
      "put the others into an action of their own, on an event that this one emits",
  }))
}
