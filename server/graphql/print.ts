import { writeFileSync } from "node:fs"
import { lexicographicSortSchema, printSchema } from "graphql"
import { schema } from "./schema.ts"

/** The schema as SDL, sorted, so that it only changes when the contract does. */
export const printedSchema = (): string => `${printSchema(lexicographicSortSchema(schema))}\n`

if (import.meta.main) {
  writeFileSync(new URL("../../schema.graphql", import.meta.url), printedSchema())
}
