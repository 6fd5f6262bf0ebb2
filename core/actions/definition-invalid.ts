import { Schema } from "effect"
import { Problem } from "../model/problem.ts"

/** An event type, a provider operation, an action, or a set of them, is not as it must be. Holds all problems. */
export class DefinitionInvalid extends Schema.TaggedError<DefinitionInvalid>()("DefinitionInvalid", {
  /** What it is, with its name. */
  what: Schema.String,
  problems: Schema.Array(Problem),
}) {
  override get message() {
    const all = this.problems.map(({ path, message }) => `\n  ${path === "" ? "" : `${path}: `}${message}`).join("")
    return `${this.what} is not valid:${all}`
  }
}

/** Definitions are made while a program's modules load, where nothing but a throw can refuse them. */
export const refuseInvalid = (what: string, problems: ReadonlyArray<Problem>): void => {
  if (problems.length > 0) throw new DefinitionInvalid({ what, problems })
}

/** What is wrong with a name that is stored with rows. */
export const nameProblems = (name: string): ReadonlyArray<Problem> =>
  /^[\w.-]{1,100}$/.test(name)
    ? []
    : [{ path: "name", message: "must be 1 to 100 letters, digits, '.', '_' or '-'; it is stored with every row" }]
