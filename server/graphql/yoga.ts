import { Cause, type Context, Effect } from "effect"
import { createYoga, type YogaServerInstance } from "graphql-yoga"
import type { GraphqlContext, Services } from "./context.ts"
import { isExpected, maskDefect } from "./errors.ts"
import { limits } from "./limits.ts"
import { schema } from "./schema.ts"
import { Views } from "./views.ts"

export const GRAPHQL_PATH = "/graphql"
/** The longest request body or WebSocket message, in bytes. */
export const MAX_MESSAGE_BYTES = 1_000_000

export type Yoga = YogaServerInstance<object, GraphqlContext>

/** GraphQL over HTTP; `getEnveloped` also serves the WebSocket, so that limits and masking are the same on both. */
export const makeYoga = (services: Context.Context<Services>): Yoga =>
  createYoga<object, GraphqlContext>({
    schema,
    graphqlEndpoint: GRAPHQL_PATH,
    context: () => ({ services, views: new Views(services) }),
    plugins: [limits()],
    maskedErrors: {
      maskError: (error) => {
        if (isExpected(error)) return error
        const masked = maskDefect(Cause.die(error))
        Effect.runForkWith(services)(masked.log)
        return masked.error
      },
    },
    maxRequestBodySize: MAX_MESSAGE_BYTES,
    // The server in front serves GraphiQL and health itself, and lets no other site in.
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    logging: false,
  })
