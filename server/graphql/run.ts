import { Effect, Stream } from "effect"
import { GraphQLError } from "graphql"
import type { GraphqlContext, Services } from "./context.ts"
import { type EngineError, fromCause } from "./errors.ts"

/** Runs a resolver's effect. A known failure rejects with its GraphQLError, a defect with a masked one. */
export const run = async <A>(
  context: Pick<GraphqlContext, "services">,
  effect: Effect.Effect<A, EngineError | GraphQLError, Services>,
): Promise<A> => {
  const outcome = await Effect.runPromiseWith(context.services)(Effect.catchCause(effect, fromCause))
  if (outcome instanceof GraphQLError) throw outcome
  return outcome
}

/**
 * Runs a subscription's effect and answers its stream as an async iterable. A failure of the effect rejects the
 * subscribe operation; one of the stream ends the subscription with its error. Ending the iteration ends the stream.
 */
export const subscribe = async <A>(
  context: Pick<GraphqlContext, "services">,
  effect: Effect.Effect<Stream.Stream<A, EngineError>, EngineError | GraphQLError, Services>,
): Promise<AsyncIterable<A>> => {
  const stream = await run(context, effect)
  return Stream.toAsyncIterableWith(
    Stream.catchCause(stream, (cause) => Stream.fromEffect(Effect.flip(fromCause(cause)))),
    context.services,
  )
}
