import { randomUUID } from "node:crypto"
import { Clock, type Context, Effect, type Exit, Schema, type Scope } from "effect"
import { deliveryId } from "../../model/sink-event.ts"
import type { Action, ActionContext, EventOf, Subscription } from "../action.ts"
import type { EventType } from "../event-type.ts"
import type { MatchStates } from "../match-states.ts"
import { writerOf } from "../payload.ts"
import { type Staging, stage } from "../staging/staging.ts"
import type { Claimed } from "../store/claim.ts"
import type { NewEvent } from "../store/outbox.ts"
import type { Store } from "../store/store.ts"
import { makeCalls } from "./calls.ts"
import type { Job } from "./job.ts"
import { currentTraceparent, spanOf } from "./trace.ts"
import type { Verdict } from "./verdict.ts"

/** A run took longer than its action may take. */
class RunTimedOut extends Schema.TaggedError<RunTimedOut>()("RunTimedOut", { ms: Schema.Int }) {
  override get message() {
    return `the run took longer than the action's timeoutMs, which is ${this.ms}; raise it, or do less in one run`
  }
}

/** What a run left behind. */
export interface Executed {
  readonly exit: Exit.Exit<unknown, unknown>
  /** What ends the run, whatever the action made of it. */
  readonly verdict: Verdict | null
  readonly staging: Staging
  readonly emitted: ReadonlyArray<NewEvent>
  /** How long it took. */
  readonly ms: number
}

/** What runs have in common. */
export interface Environment {
  readonly written: Store
  readonly matches: MatchStates
  readonly subscribers: (type: string) => ReadonlyArray<string>
  /** What actions require of the program. */
  readonly services: Context.Context<never>
}

const eventOf = (subscription: Subscription, claimed: Claimed, payload: unknown): EventOf<Subscription> => {
  if (subscription.kind === "event") return { type: claimed.type, id: claimed.event, payload }
  const { kind, matchId, life, network, emission } = claimed
  const type = kind ?? "match"
  return {
    type,
    id: deliveryId(matchId ?? "", life ?? 1, type),
    monitor: subscription.monitor,
    network: network ?? "",
    matchId: matchId ?? "",
    life: life ?? 1,
    emission,
    payload,
  }
}

const emitter = (claimed: Claimed, subscribers: Environment["subscribers"], emitted: Array<NewEvent>) =>
  Effect.fnUntraced(function* <A>(type: EventType<string, A>, payload: A, options: { readonly tenant?: string } = {}) {
    const text = yield* Effect.fromResult(writerOf(type)(payload))
    emitted.push({
      id: randomUUID(),
      type: type.name,
      version: type.version,
      payload: text,
      // Nobody acts for another tenant.
      tenant: claimed.tenant ?? options.tenant ?? null,
      traceparent: yield* currentTraceparent,
      depth: claimed.depth + 1,
      actions: subscribers(type.name),
    })
  })

/** Runs an action once, in a scope and a span of its own; nothing of it is written yet but the records of its calls. */
export const execute = Effect.fnUntraced(function* (
  job: Job,
  action: Action,
  subscription: Subscription,
  payload: unknown,
  { written, matches, subscribers, services }: Environment,
): Effect.fn.Return<Executed> {
  const { claimed } = job
  const staging = stage(written, claimed.tenant)
  const emitted: Array<NewEvent> = []
  const { calls, verdict } = makeCalls(written, job.run, action.calls, job.calls)
  const event = eventOf(subscription, claimed, payload)
  const context: ActionContext = {
    event,
    tenant: claimed.tenant,
    em: staging.em,
    emit: emitter(claimed, subscribers, emitted),
    matches,
    calls: calls as ActionContext["calls"],
  }
  const parent = spanOf(claimed.traceparent)
  const began = yield* Clock.currentTimeMillis
  // What it requires are the services.
  const exit = yield* Effect.suspend(() => action.run(context) as Effect.Effect<unknown, unknown, Scope.Scope>).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: action.timeoutMs,
      orElse: () => Effect.fail(new RunTimedOut({ ms: action.timeoutMs })),
    }),
    Effect.withSpan(
      `action ${action.name}`,
      {
        kind: "consumer",
        attributes: { action: action.name, event: event.id },
        ...(parent === undefined ? { root: true } : { parent }),
      },
      // Where it was run says nothing of the action, and is found out anew each time.
      { captureStackTrace: false },
    ),
    Effect.provideContext(services),
    Effect.exit,
  )
  const ms = (yield* Clock.currentTimeMillis) - began
  return { exit, verdict: verdict(exit._tag === "Success"), staging, emitted, ms }
})
