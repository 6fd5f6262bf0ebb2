import { Schema } from "effect"

/**
 * One reason why an input was refused: `path` names the field (`selector.event`, `predicate`, `sinks.0`; empty for the
 * whole), `message` says what it holds and what is accepted. A secret's value never stands in a message.
 */
export const Problem = Schema.Struct({ path: Schema.String, message: Schema.String })
export type Problem = typeof Problem.Type

/** Puts a prefix before the path of each problem. */
export const under = (prefix: string, problems: ReadonlyArray<Problem>): ReadonlyArray<Problem> =>
  problems.map(({ path, message }) => ({ path: path === "" ? prefix : `${prefix}.${path}`, message }))
