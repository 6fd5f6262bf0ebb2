import type { PutOptions } from "../../core/engine/resources.ts"
import { invalid } from "./problems.ts"

type Input = { readonly [field: string]: unknown }

/** Input types whose own null fields mean absent; JSON values (`config`, `selector`) are passed as they are. */
const NESTED = new Set(["gate", "retry", "throttle", "aggregate"])

const present = (input: Input): Input =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null && value !== undefined))

/** Fields of an input that are no part of the resource. */
const OPTIONS = new Set(["ifRevision", "validateOnly"])

/** The engine's form of a resource input: options apart, null fields left out. */
export const toDefinition = (input: Input): Input =>
  Object.fromEntries(
    Object.entries(present(input))
      .filter(([field]) => !OPTIONS.has(field))
      .map(([field, value]) => [field, NESTED.has(field) ? present(value as Input) : value]),
  )

/** The options that stand in a resource input. */
export const toPutOptions = (input: {
  readonly ifRevision?: string | null | undefined
  readonly validateOnly?: boolean | null | undefined
}): PutOptions => ({
  ...(input.ifRevision == null ? {} : { ifRevision: input.ifRevision }),
  ...(input.validateOnly == null ? {} : { validateOnly: input.validateOnly }),
})

const MAX_PAGE = 1000

/** The size of a page. Throws INVALID outside 1 to 1000; null means the default. */
export const pageSize = (first: number | null | undefined): number => {
  const size = first ?? 50
  if (size >= 1 && size <= MAX_PAGE) return size
  throw invalid([{ path: "first", message: `is ${size}; a page holds 1 to ${MAX_PAGE} items` }])
}

/** A block number that the engine can hold. Throws INVALID for another integer. */
export const blockNumber = (path: string, block: bigint): number => {
  if (block >= 0n && block <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(block)
  throw invalid([{ path, message: `is ${block}; a block number lies between 0 and ${Number.MAX_SAFE_INTEGER}` }])
}

/** Leaves out what is null, so that it can be spread over optional fields. */
export const defined = <T extends { readonly [field: string]: unknown }>(
  fields: T,
): { readonly [K in keyof T]?: NonNullable<T[K]> } => present(fields) as { [K in keyof T]?: NonNullable<T[K]> }
