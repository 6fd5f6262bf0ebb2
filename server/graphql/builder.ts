import SchemaBuilder from "@pothos/core"
import type { Json } from "../../core/model/fields.ts"
import type { GraphqlContext } from "./context.ts"

/** The schema under construction. Output fields and arguments are non-null unless they say otherwise. */
export const builder = new SchemaBuilder<{
  Context: GraphqlContext
  DefaultFieldNullability: false
  DefaultInputFieldRequiredness: true
  Scalars: {
    ID: { Input: string; Output: string }
    BigInt: { Input: bigint; Output: bigint | number | string }
    JSON: { Input: Json; Output: unknown }
    DateTime: { Input: never; Output: number }
  }
}>({ defaultFieldNullability: false, defaultInputFieldRequiredness: true })
