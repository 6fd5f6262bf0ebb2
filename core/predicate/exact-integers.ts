import { PredicateFailure } from "./failure.ts"
import type { Code, Int } from "./expression.ts"
import { MAX_INT_BITS } from "./limits.ts"

const BOUND = 1n << BigInt(MAX_INT_BITS)
const MAX_DIGITS = BOUND.toString().length

/** Whether an integer lies within the bounds of predicates. */
export const isWithinBounds = (value: bigint): boolean => value < BOUND && value > -BOUND

const bounded = (value: bigint, where: string): bigint => {
  if (isWithinBounds(value)) return value
  throw new PredicateFailure(`an integer has more than ${MAX_INT_BITS} bits (${where})`)
}

const toBigInt = (value: Int): bigint => (typeof value === "bigint" ? value : BigInt(value))

const nonZero = (divisor: bigint, where: string): bigint => {
  if (divisor !== 0n) return divisor
  throw new PredicateFailure(`division by zero (${where})`)
}

const OPERATIONS = {
  "+": (a: bigint, b: bigint) => a + b,
  "-": (a: bigint, b: bigint) => a - b,
  "*": (a: bigint, b: bigint) => a * b,
  "/": (a: bigint, b: bigint, where: string) => a / nonZero(b, where),
  "%": (a: bigint, b: bigint, where: string) => a % nonZero(b, where),
}

/** Exact arithmetic. Division cuts towards zero and the remainder has the sign of the dividend. */
export const integerArithmetic = (
  op: keyof typeof OPERATIONS,
  left: Code<Int>,
  right: Code<Int>,
  where: string,
): Code<bigint> => {
  const apply = OPERATIONS[op]
  return (fields) => bounded(apply(toBigInt(left(fields)), toBigInt(right(fields)), where), where)
}

/** Exact negation. */
export const negated =
  (operand: Code<Int>): Code<bigint> =>
  (fields) =>
    -toBigInt(operand(fields))

/** `int(string)`: decimal digits with an optional minus sign. */
export const integerOfText = (text: string): bigint => {
  const value = text.length <= MAX_DIGITS + 1 && /^-?[0-9]+$/.test(text) ? BigInt(text) : BOUND
  if (isWithinBounds(value)) return value
  throw new PredicateFailure(`int(): the text is no decimal integer of at most ${MAX_INT_BITS} bits`)
}

/** `int(double)`: cuts towards zero. */
export const integerOfDouble = (value: number): bigint => {
  if (!Number.isFinite(value)) throw new PredicateFailure(`int(): ${value} is no integer`)
  return bounded(BigInt(Math.trunc(value)), "int()")
}
