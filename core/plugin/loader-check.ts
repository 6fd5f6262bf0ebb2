import { Schema } from "effect"
import type { Plugin } from "./sink.ts"

/** What the default export of a plugin must be. */
export const remedy = "it must be what SourcePlugin.make({...}) or SinkPlugin.make({...}) returns"

/**
 * The plugin that `value` is, or everything that is wrong with it; `subject` says where it stands (`the default
 * export`). Checks by shape, so that a plugin made with another copy of this package passes.
 */
export const checkPlugin = (value: unknown, subject: string): Plugin | { readonly reason: string } => {
  if (typeof value !== "object" || value === null)
    return { reason: `${subject} is ${typeof value === "object" ? "null" : article(typeof value)}; ${remedy}` }
  const plugin = value as { readonly [key: string]: unknown }
  const kind = plugin["kind"]
  if (kind !== "source" && kind !== "sink") return { reason: `${subject} has no kind "source" or "sink"; ${remedy}` }
  const faults = [
    ...fault(
      isName(plugin["name"]),
      "name must be 1 to 160 letters, digits, '-', '_', '.' or ':', starting with a letter or digit",
    ),
    ...fault(Schema.isSchema(plugin["config"]), "config must be a Schema"),
    ...fault(isStrings(plugin["sensitive"]), "sensitive must be a list of paths, like url or headers.*"),
    ...fault(typeof plugin["make"] === "function", "make must be a function"),
    ...(kind === "source" ? sourceFaults(plugin) : []),
  ]
  return faults.length === 0 ? (value as Plugin) : { reason: `the ${kind} plugin is incomplete: ${faults.join("; ")}` }
}

const article = (type: string): string => (type === "undefined" ? type : `a ${type}`)

const sourceFaults = (plugin: { readonly [key: string]: unknown }): ReadonlyArray<string> => {
  const address = plugin["address"] as { readonly [key: string]: unknown } | null | undefined
  return [
    ...fault(Schema.isSchema(plugin["selector"]), "selector must be a Schema"),
    ...fault(isStrings(plugin["fixed"]), "fixed must be a list of names of config fields"),
    ...fault(typeof plugin["describe"] === "function", "describe must be a function"),
    ...fault(
      typeof address?.["parse"] === "function" && typeof address["format"] === "function",
      "address must have the functions parse and format",
    ),
  ]
}

const fault = (holds: boolean, message: string): ReadonlyArray<string> => (holds ? [] : [message])

const isName = (value: unknown): boolean =>
  typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,159}$/.test(value)

const isStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((element) => typeof element === "string")
