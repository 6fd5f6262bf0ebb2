import { hash } from "node:crypto"
import type { EventShape, Fields } from "../model/fields.ts"
import type { Problem } from "../model/problem.ts"
import { compileProgram, syntaxProblems } from "./program.ts"
import type { Purpose } from "./types.ts"

/** A key expression that was accepted. */
export interface CompiledKey {
  /**
   * The key of an event: the same text for equal values, and for them alone. Integers are decimal and exact, addresses and
   * bytes in their canonical form. Throws `PredicateFailure`.
   */
  readonly keyOf: (fields: Fields) => string
}

/** Keys stand in an index and are compared byte by byte: they are short and hold what any database can. */
const LONGEST_KEY = 127

/** A text as a key, or its SHA-512, which no text that stands for itself is as long as. */
const keyOfText = (text: string): string =>
  text.length <= LONGEST_KEY && text.isWellFormed() && !text.includes("\0")
    ? text
    : hash("sha512", Buffer.from(text, "utf16le"), "hex")

const KINDS: ReadonlySet<string> = new Set(["string", "bytes", "address", "bool", "int"])

const PURPOSE: Purpose = {
  name: "the key",
  instead: "write a field, as in args.from, or leave it out to count all hits together",
  accepts: ({ kind }) => KINDS.has(kind),
  accepted: "a string, an address, bytes, a bool or an int, as in args.from",
}

/** What is wrong with the syntax of a key expression, whatever its events are. */
export const keySyntax = (source: string): ReadonlyArray<Problem> => syntaxProblems(source, PURPOSE)

/**
 * Compiles a CEL expression by whose value hits are told apart, or answers with every problem and its line and column. Its
 * value has one type for all events.
 */
export const compileKey = (
  source: string,
  shape: EventShape,
): CompiledKey | { readonly problems: ReadonlyArray<Problem> } => {
  const keyOf = compileProgram(source, shape, PURPOSE, (value) =>
    typeof value === "string" ? keyOfText(value) : String(value),
  )
  return typeof keyOf === "function" ? { keyOf } : keyOf
}
