import { randomUUID } from "node:crypto"
import type { EntityManager } from "@mikro-orm/core"
import { Clock, Effect } from "effect"
import { EmitRefused } from "./error.ts"
import type { EventType } from "./event-type.ts"
import type { InvalidPayload } from "./invalid-payload.ts"
import { writerOf } from "./payload.ts"
import type { Registry } from "./registry.ts"
import { currentTraceparent } from "./runner/trace.ts"
import { type StoreFailed, storeFailed } from "./store/error.ts"
import { type NewEvent, writeEvents } from "./store/outbox.ts"
import { sessionIn } from "./store/session.ts"
import type { Store } from "./store/store.ts"

export interface EmitOptions {
  /** Whom the event belongs to: the actions that get it see only what is that tenant's. Nobody unless set. */
  readonly tenant?: string
  /** An EntityManager of the store in an open transaction, which the event then commits with. */
  readonly em?: EntityManager
}

/** Emits an event of the host program; answers its id. */
export type Emit = <Name extends string, A>(
  type: EventType<Name, A>,
  payload: A,
  options?: EmitOptions,
) => Effect.Effect<string, InvalidPayload | EmitRefused | StoreFailed>

export const makeEmit = (written: Store, registry: Registry, wake: Effect.Effect<void>): Emit =>
  Effect.fn("Actions.emit")(function* (type, payload, { tenant, em } = {}) {
    const event: NewEvent = {
      id: randomUUID(),
      type: type.name,
      version: type.version,
      payload: yield* Effect.fromResult(writerOf(type)(payload)),
      tenant: tenant ?? null,
      traceparent: yield* currentTraceparent,
      depth: 0,
      actions: registry.subscribers(type.name),
    }
    const now = yield* Clock.currentTimeMillis
    if (em === undefined) {
      yield* written.write("emit an event", (session) => writeEvents(session, [event], now))
      yield* wake
      return event.id
    }
    if (em.getDriver() !== written.orm.em.getDriver()) {
      const reason = `its em is of another database than the event store ${written.name}; leave em out, or use one of the store's`
      return yield* new EmitRefused({ type: type.name, reason })
    }
    if (!em.isInTransaction()) {
      const reason = "its em is in no transaction; emit within em.transactional, or leave em out"
      return yield* new EmitRefused({ type: type.name, reason })
    }
    yield* Effect.tryPromise({
      try: () => writeEvents(sessionIn(em, written.database), [event], now),
      catch: (cause) => storeFailed(written.name, "emit an event", cause),
    })
    return event.id
  })
