import { Effect, Fiber, Layer, Result, Schema, type Scope } from "effect"
import type { Problem } from "../model/problem.ts"
import { decodeConfig } from "./decode-config.ts"
import { Egress, HttpFailure } from "./egress.ts"
import { Secrets, SecretUnavailable } from "./secrets.ts"

/** A plugin breaks its contract; `reason` says how. */
export class ConformanceFailure extends Schema.TaggedError<ConformanceFailure>()("ConformanceFailure", {
  reason: Schema.String,
}) {
  override get message() {
    return this.reason
  }
}

/**
 * One rule of the contract: run `effect` as a test called `name`, in any test runner. It succeeds, or fails with
 * `ConformanceFailure`; a defect is the plugin's. It needs real time.
 */
export interface ConformanceCheck {
  readonly name: string
  readonly effect: Effect.Effect<void, ConformanceFailure>
}

/** What the plugin is given while it is checked. Without it every request and every secret is refused. */
export type ConformanceEnvironment = Layer.Layer<Egress | Secrets, unknown>

const notGiven = new HttpFailure({ kind: "denied", reason: "the suite was given no environment" })

export const nothingOutside: ConformanceEnvironment = Layer.merge(
  Layer.succeed(Egress, { request: () => Effect.fail(notGiven), openSocket: () => Effect.fail(notGiven) }),
  Layer.succeed(Secrets, {
    resolve: (reference) =>
      Effect.fail(new SecretUnavailable({ reference, reason: "the suite was given no environment" })),
  }),
)

/** A check may take this long in all. */
const LIMIT = "30 seconds"

/** Makes a check of a scoped effect; a failure of the plugin itself becomes the check's. */
export const check = (
  name: string,
  environment: ConformanceEnvironment,
  effect: Effect.Effect<void, unknown, Scope.Scope | Egress | Secrets>,
): ConformanceCheck => ({
  name,
  effect: effect.pipe(
    Effect.scoped,
    Effect.provide(environment),
    Effect.mapError((error) => (error instanceof ConformanceFailure ? error : broken(`it failed: ${describe(error)}`))),
    Effect.timeoutOrElse({ duration: LIMIT, orElse: () => Effect.fail(broken(`it did not end within ${LIMIT}`)) }),
  ),
})

export const broken = (reason: string): ConformanceFailure => new ConformanceFailure({ reason })

/** Fails with the reason unless the rule holds. */
export const must = (holds: boolean, reason: string): Effect.Effect<void, ConformanceFailure> =>
  holds ? Effect.void : Effect.fail(broken(reason))

export const describe = (error: unknown): string => {
  const { _tag: tag, message } = error as { readonly _tag?: unknown; readonly message?: unknown }
  return [tag, message].filter((part) => typeof part === "string" && part !== "").join(": ") || String(error)
}

/** Decodes JSON that the plugin must accept. */
export const accepted = <A>(
  what: string,
  schema: Schema.Codec<A, any>,
  json: unknown,
  sensitive: ReadonlyArray<string> = [],
): Effect.Effect<A, ConformanceFailure> =>
  Effect.fromResult(decodeConfig(schema, json, sensitive)).pipe(
    Effect.mapError((problems) => broken(`${what} is refused: ${list(problems)}`)),
  )

/** Fails for each JSON that is taken though it must be refused, and for problems without a message. */
export const refused = Effect.fnUntraced(function* (
  what: string,
  inputs: ReadonlyArray<unknown>,
  problemsOf: (json: unknown) => Effect.Effect<ReadonlyArray<Problem>, never, Scope.Scope | Egress | Secrets>,
) {
  for (const json of inputs) {
    const problems = yield* problemsOf(json)
    yield* must(problems.length > 0, `${what} is taken though it must be refused: ${JSON.stringify(json)}`)
    yield* must(
      problems.every(({ message }) => message.trim() !== ""),
      `${what} is refused without saying why: ${JSON.stringify(json)}`,
    )
  }
})

/** The problems that a schema finds, or what `next` finds in the value that it decodes. */
export const problemsWith =
  <A, R>(
    schema: Schema.Codec<A, any>,
    next: (value: A) => Effect.Effect<ReadonlyArray<Problem>, never, R>,
  ): ((json: unknown) => Effect.Effect<ReadonlyArray<Problem>, never, R>) =>
  (json) =>
    Result.match(decodeConfig(schema, json), { onFailure: (problems) => Effect.succeed(problems), onSuccess: next })

export const list = (problems: ReadonlyArray<Problem>): string =>
  problems.map(({ path, message }) => (path === "" ? message : `${path} ${message}`)).join("; ")

const PROMPT = "2 seconds"

/** Fails unless the effect ends promptly. */
export const promptly = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.timeoutOrElse({ duration: PROMPT, orElse: () => Effect.fail(broken(`${what} took more than ${PROMPT}`)) }),
  )

/** Interrupts a fiber, and fails if it goes on for long. */
export const interruptPromptly = (fiber: Fiber.Fiber<unknown, unknown>) =>
  promptly("ending after an interruption", Fiber.interrupt(fiber))
