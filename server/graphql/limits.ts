import { EnvelopArmorPlugin } from "@escape.tech/graphql-armor"
import type { GraphQLError } from "graphql"

const onReject = [
  (_: unknown, error: GraphQLError): void => {
    error.extensions["code"] = "TOO_COMPLEX"
  },
]

/**
 * Bounds what one operation may ask for. The deepest useful query has 6 levels and the dearest page (1,000 dead letters
 * with all their fields) costs about 65,000; introspection is not counted.
 */
export const limits = () =>
  EnvelopArmorPlugin({
    maxDepth: { n: 10, flattenFragments: true, onReject },
    maxAliases: { n: 30, onReject },
    maxDirectives: { n: 50, onReject },
    maxTokens: { n: 4000, onReject },
    costLimit: { maxCost: 150_000, flattenFragments: true, onReject },
    // Anyone may read the schema, so a suggestion gives nothing away and helps whoever mistyped.
    blockFieldSuggestion: { enabled: false },
  })
