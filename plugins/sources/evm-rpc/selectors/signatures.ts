import { type AbiEvent, type AbiFunction, parseAbiItem } from "viem"

/** What a selector can name by a signature. */
export type ItemKind = "event" | "function"

export type AbiItem<Kind extends ItemKind> = Kind extends "event" ? AbiEvent : AbiFunction

/** An example of a signature, for messages. */
const EXAMPLES = {
  event: "event Transfer(address indexed from, address indexed to, uint256 value)",
  function: "function transfer(address to, uint256 value)",
} as const

/** Says what a signature looks like. */
export const expectedSignature = (kind: ItemKind): string => `expected a signature such as ${EXAMPLES[kind]}`

/** Far above any real signature, and short enough for the parser to go through whatever it holds. */
const MAX_SIGNATURE = 4096

/** One line without what Solidity's source has around a declaration. */
const tidy = (text: string): string => text.replaceAll(/\s+/g, " ").trim().replace(/ ?;$/, "")

const ANONYMOUS = /\) ?anonymous$/

/**
 * Parses a signature as Solidity writes it, or says what is wrong with it.
 *
 * @param structs declarations of the structs that it may name
 */
export const parseSignature = <Kind extends ItemKind>(
  kind: Kind,
  text: string,
  structs: ReadonlyArray<string> = [],
): AbiItem<Kind> | string => {
  if (text.length > MAX_SIGNATURE)
    return `the signature has ${text.length} characters; at most ${MAX_SIGNATURE} are read`
  const line = tidy(text)
  if (!line.startsWith(`${kind} `)) return `'${text}' does not begin with '${kind}'; ${expectedSignature(kind)}`
  const anonymous = kind === "event" && ANONYMOUS.test(line)
  const parsed = parse([...structs.map(tidy), anonymous ? line.replace(ANONYMOUS, ")") : line])
  if (typeof parsed === "string") return `${parsed} (${expectedSignature(kind)})`
  return (anonymous ? { ...parsed, anonymous } : parsed) as AbiItem<Kind>
}

/** What is wrong with the declaration of a struct, by itself or over what it names; null if nothing is. */
export const structProblem = (text: string, structs: ReadonlyArray<string>): string | null => {
  if (text.length > MAX_SIGNATURE) return `the struct has ${text.length} characters; at most ${MAX_SIGNATURE} are read`
  const name = /^struct ([\w$]+)/.exec(tidy(text))?.[1] ?? "?"
  const parsed = parse([...structs.map(tidy), `function f(${name} x)`])
  return typeof parsed === "string" ? parsed : null
}

const parse = (lines: ReadonlyArray<string>): AbiEvent | AbiFunction | string => {
  try {
    return parseAbiItem(lines as unknown as "event E()") as unknown as AbiEvent
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return error.message.split("\n\nVersion")[0]!.replaceAll(/\s*\n+\s*/g, " ")
  }
}
