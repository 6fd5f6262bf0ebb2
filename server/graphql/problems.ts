import { GraphQLError } from "graphql"
import type { Problem } from "../../core/model/problem.ts"

/** An argument that the schema's types cannot judge was refused: code INVALID, with every problem. */
export const invalid = (problems: ReadonlyArray<Problem>): GraphQLError =>
  new GraphQLError(problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; "), {
    extensions: { code: "INVALID", problems },
  })
