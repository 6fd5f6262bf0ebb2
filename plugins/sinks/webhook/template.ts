import { Effect, type Scope } from "effect"
import { Environment } from "minijinja-js"
import { Permanent, PluginRefused } from "../../../core/plugin/error.ts"

const NAME = "body_template"

// Bounds a template's loops: about 200 ms, and enough for a digest of 10,000 matches.
const FUEL = 5_000_000

/** What the engine says, with `line 2` for its `(in body_template:2)`; what it adds below its first line is left out. */
const describe = (error: unknown): string => {
  const [first = ""] = String(error).split("\n", 1)
  const located = /^(?:Error: )?(.*) \(in body_template:(\d+)\)$/.exec(first)
  return located === null ? first.replace(/^Error: /, "") : `line ${located[2]}: ${located[1]}`
}

const compile = (source: string): Environment => {
  const environment = new Environment()
  environment.fuel = FUEL
  environment.addTemplate(NAME, source)
  return environment
}

/** What is wrong with a template that names nothing of a digest; undefined for one that may know them. */
export const noDigestsOf = (source: string): string | undefined =>
  /\bmatches\b/.test(source)
    ? undefined
    : `${NAME} does not mention "matches": a digest fails in it, or shows nothing of what it holds; ` +
      `add a branch for it ({% if type == "digest" %}{% for match in matches %}...)`

/** Renders the variables of an event. The engine sees plain JSON only; functions and prototypes do not exist in it. */
export type Render = (variables: unknown) => Effect.Effect<string, Permanent>

/** Compiles a template; a syntax error is refused with its line, and so is, when it is rendered, any later error. */
export const compileTemplate = (source: string): Effect.Effect<Render, PluginRefused, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => ({ environment: compile(source) }),
      catch: (error) => PluginRefused.of([{ path: NAME, message: describe(error) }]),
    }),
    (template) => Effect.sync(() => template.environment.free()),
  ).pipe(
    Effect.map(
      (template): Render =>
        (variables) =>
          Effect.try({
            try: () => template.environment.renderTemplate(NAME, variables),
            catch: (error) => {
              // An environment that trapped stays locked; the next event gets a new one.
              if (error instanceof Error && error.name === "RuntimeError") template.environment = compile(source)
              return new Permanent({ reason: `${NAME}: ${describe(error)}` })
            },
          }),
    ),
  )
