import { type Effect, Schema } from "effect"
import { nameProblems, refuseInvalid } from "./definition-invalid.ts"

/**
 * What repeating a call does. `keyed`: the provider ignores a repeat with the same idempotency key. `safe`: a repeat
 * changes nothing, as a look-up. `never`: a repeat does it again, so that the call is sent at most once.
 */
export type Repeat = "keyed" | "safe" | "never"

/** What a call is sent with. */
export interface CallOptions {
  /** The idempotency key: the same on every repetition of this call, and no other call's. */
  readonly key: string
  /** The trace of the event (`traceparent`), for a provider that goes on with it. */
  readonly headers: Readonly<Record<string, string>>
}

/** A call to a provider that actions may declare. */
export interface Operation<In = any, Out = any, E = any, R = any> {
  readonly name: string
  readonly repeat: Repeat
  readonly input: Schema.Codec<In, any>
  readonly output: Schema.Codec<Out, any>
  readonly call: (input: In, options: CallOptions) => Effect.Effect<Out, E, R>
}

/**
 * Fails a call that is known to have done nothing, such as one that was refused or never reached the provider: a `never`
 * call that fails with it may be sent again. After any other failure nobody knows, and an operator has to look.
 */
export class NothingDone extends Schema.TaggedError<NothingDone>()("NothingDone", { reason: Schema.String }) {
  override get message() {
    return `the provider did nothing: ${this.reason}`
  }
}

/** The operations of providers. */
export const Provider = {
  /** Defines an operation. Throws `DefinitionInvalid` with all that is wrong. */
  operation: <In, InI, Out, OutI, E, R>(definition: {
    /** Stored with each call: a call that was recorded under another name is not this one's. */
    readonly name: string
    readonly repeat: Repeat
    /** The JSON of the arguments tells calls apart. */
    readonly input: Schema.Codec<In, InI>
    /** Its JSON is recorded, and is what a rerun gets in place of a second call. */
    readonly output: Schema.Codec<Out, OutI>
    readonly call: (input: In, options: CallOptions) => Effect.Effect<Out, E, R>
  }): Operation<In, Out, E, R> => {
    const { name, repeat } = definition
    const problems = [...nameProblems(name)]
    if (!["keyed", "safe", "never"].includes(repeat)) {
      problems.push({ path: "repeat", message: `must be "keyed", "safe" or "never", not ${JSON.stringify(repeat)}` })
    }
    refuseInvalid(`provider operation "${name}"`, problems)
    return definition
  },
}
