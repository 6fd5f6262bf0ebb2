import type { Schema } from "effect"
import { nameProblems, refuseInvalid } from "./definition-invalid.ts"

/** A kind of event: its name, and what its payload is. */
export interface EventType<Name extends string = string, A = any> {
  readonly kind: "event"
  readonly name: Name
  /** Counts the changes of the payload, from 1. An event of a later version than a program's own is not read by it. */
  readonly version: number
  readonly schema: Schema.Codec<A, any>
}

/** An event that an action or the host program emitted, as an action gets it. */
export interface EmittedEvent<Name extends string, A> {
  readonly type: Name
  /** Names this event among all. */
  readonly id: string
  readonly payload: A
}

/** The names that events of monitors have. */
const OF_MATCHES = new Set(["match", "retracted"])

/** Defines a kind of event. Throws `DefinitionInvalid` with all that is wrong. */
export const EventType = {
  make: <const Name extends string, A, I>(definition: {
    readonly name: Name
    readonly version: number
    /** Its JSON is what is stored: amounts keep every digit, as text. */
    readonly schema: Schema.Codec<A, I>
  }): EventType<Name, A> => {
    const { name, version } = definition
    const problems = [...nameProblems(name)]
    if (OF_MATCHES.has(name)) problems.push({ path: "name", message: `"${name}" is what monitors' events are called` })
    if (!Number.isSafeInteger(version) || version < 1) {
      problems.push({ path: "version", message: `must be an integer from 1 on, not ${version}` })
    }
    refuseInvalid(`event type "${name}"`, problems)
    return { kind: "event", ...definition }
  },
}
