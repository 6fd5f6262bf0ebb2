import { type ASTNode, Environment, ParseError } from "@marcbachmann/cel-js"
import type { Problem } from "../model/problem.ts"
import { MAX_LIST, MAX_NESTING, MAX_NODES, MAX_SOURCE } from "./limits.ts"
import type { Purpose } from "./types.ts"

/** A node of a parsed expression; `op` says what `args` holds, `pos` is where messages point. */
export type Node = ASTNode
export type NodeOf<Op extends Node["op"]> = Extract<Node, { readonly op: Op }>

const environment = new Environment({
  limits: { maxAstNodes: MAX_NODES, maxDepth: MAX_NESTING, maxListElements: MAX_LIST, maxMapEntries: MAX_LIST },
})

const HINTS: ReadonlyArray<readonly [RegExp, string]> = [
  [/maxAstNodes/, `it has more than ${MAX_NODES} parts`],
  [/maxDepth/, `it is nested deeper than ${MAX_NESTING} levels`],
  [/maxListElements|maxMapEntries/, `a list has more than ${MAX_LIST} elements`],
  [/maxCallArguments/, "a call has too many arguments"],
  [/character: =$/, "'=' is no operator; equality is written =="],
  [/character: &$/, "'&' is no operator; 'and' is written &&"],
  [/character: \|$/, "'|' is no operator; 'or' is written ||"],
  [/^Expected IDENTIFIER, got IN$/, 'a field name is expected; a field named like a keyword is written args["in"]'],
]

const explain = (summary: string, name: string): string => {
  const hint = HINTS.find(([pattern]) => pattern.test(summary))
  if (hint !== undefined) return hint[1]
  return `the syntax is wrong: ${summary.replaceAll("EOF", `the end of ${name}`)}`
}

/** `line 1, column 12`, both counted from 1. */
export const position = (source: string, offset: number): string => {
  const before = source.slice(0, offset)
  const line = before.split("\n").length
  return `line ${line}, column ${offset - before.lastIndexOf("\n")}`
}

/** Where a node stands, for messages. */
export const positionOf = (node: Node): string => position(node.input, node.pos)

/** A problem at a place in the source. */
export const problemAt = (source: string, offset: number, message: string): Problem => ({
  path: "",
  message: `${position(source, offset)}: ${message}`,
})

const EXCERPT = 60

/** The part of the source that a node was parsed from, shortened. */
export const excerpt = (node: Node): string => {
  const text = node.input.slice(node.start, node.end).replaceAll(/\s+/g, " ")
  return text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text
}

/** The tree of an expression, or why it has none. Nothing is type-checked here. */
export const parse = (
  source: string,
  { name, instead }: Pick<Purpose, "name" | "instead">,
): Node | { readonly problem: Problem } => {
  if (source.length > MAX_SOURCE) {
    const message = `${name} has ${source.length} characters; at most ${MAX_SOURCE} are accepted`
    return { problem: { path: "", message } }
  }
  if (source.trim() === "") return { problem: { path: "", message: `${name} is empty; ${instead}` } }
  try {
    return environment.parse(source).ast
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    return { problem: problemAt(source, error.range?.start ?? 0, explain(error.summary, name)) }
  }
}
