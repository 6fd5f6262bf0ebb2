import { Config, Effect, Option, Result } from "effect"

/** What a variable says, or what is accepted in its place. */
export type Parsed<A> = Result.Result<A, string>

export interface Variable<A> {
  readonly name: string
  readonly parse: (text: string) => Parsed<A>
  /** Stands for it when it is not set. */
  readonly byDefault: A
  /** What it holds, as an error may show it; quoted unless set. */
  readonly shown?: (text: string) => string
  /** Whether it is judged when it is set to nothing, in place of counting as not set. */
  readonly mayNotBeEmpty?: boolean
}

/** Reads a variable from the ConfigProvider; what is wrong with it is added to `problems`, and its default stands for it. */
export const readVariable = Effect.fnUntraced(function* <A>(problems: Array<string>, variable: Variable<A>) {
  const { name, parse, byDefault, shown = JSON.stringify, mayNotBeEmpty = false } = variable
  const text = yield* Config.option(Config.String(name))
  if (Option.isNone(text) || (text.value === "" && !mayNotBeEmpty)) return byDefault
  const result = parse(text.value)
  if (Result.isSuccess(result)) return result.success
  problems.push(`${name} is ${shown(text.value)}: ${result.failure}`)
  return byDefault
})
