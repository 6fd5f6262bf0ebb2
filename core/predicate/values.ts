import { PredicateFailure } from "./failure.ts"
import type { Int } from "./expression.ts"
import { type Budget, stepsOfList } from "./limits.ts"
import { type CelType, nameOf } from "./types.ts"

/** Returns a value of its type as it is; fails on an absent one, and on one that the shape does not allow. */
export type Reader = (value: unknown) => unknown

const mismatch = (value: unknown, type: CelType, what: string): never => {
  if (value === null || value === undefined) {
    throw new PredicateFailure(`${what} is absent in this event; has() tells whether an optional field is there`)
  }
  throw new PredicateFailure(`${what} is declared as ${nameOf(type)}, but the source gave a ${typeof value}`)
}

/** The reader of a type; `what` names the place that is read in messages. */
export const reader = (type: CelType, what: string): Reader => {
  switch (type.kind) {
    case "int":
      return (v) => (typeof v === "bigint" || Number.isSafeInteger(v) ? v : mismatch(v, type, what))
    case "double":
      return (v) => (typeof v === "number" ? v : mismatch(v, type, what))
    case "bool":
      return (v) => (typeof v === "boolean" ? v : mismatch(v, type, what))
    case "list":
      return (v) => (Array.isArray(v) ? v : mismatch(v, type, what))
    case "record":
      return (v) => (typeof v === "object" && v !== null ? v : mismatch(v, type, what))
    case "unknown":
      return (v) => v
    default:
      return (v) => (typeof v === "string" ? v : mismatch(v, type, what))
  }
}

/** Equality of two values of one type. */
export const equality = (type: CelType, budget: Budget): ((a: unknown, b: unknown) => boolean) => {
  if (type.kind === "int" || type.kind === "double") return (a, b) => (a as Int) == (b as Int)
  if (type.kind !== "list") return (a, b) => a === b
  const read = reader(type.items, "an element of a list")
  const same = equality(type.items, budget)
  return (a, b) => {
    const left = a as ReadonlyArray<unknown>
    const right = b as ReadonlyArray<unknown>
    if (left.length !== right.length) return false
    budget.spend(stepsOfList(left))
    return left.every((item, i) => same(read(item), read(right[i])))
  }
}
