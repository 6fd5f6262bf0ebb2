import { Schema } from "effect"
import type { SelectorDescription } from "../../../../core/plugin/source.ts"
import { blockFields } from "./fields.ts"

/** Every block, by its header. */
export const BlockSelector = Schema.Struct({ kind: Schema.Literal("block") })
export type BlockSelector = typeof BlockSelector.Type

/** A selector that was understood. */
export interface WatchedBlocks {
  readonly kind: "block"
}

/** The fields of a block, and those that identify it. */
export const blockDescription: SelectorDescription = {
  fields: {
    kind: "record",
    fields: {
      kind: { kind: "string" },
      block: {
        kind: "record",
        fields: {
          ...blockFields.fields,
          parent_hash: { kind: "bytes" },
          miner: { kind: "address", optional: true },
          transactions: { kind: "number", optional: true },
          gas_used: { kind: "int", optional: true },
          gas_limit: { kind: "int", optional: true },
          base_fee_per_gas: { kind: "int", optional: true },
        },
      },
    },
  },
  identity: ["block.number", "block.hash"],
}
