import { Context } from "effect"

/**
 * The directory that script sinks may run files of, as an absolute path; null refuses script sinks. Whoever hosts the
 * plugin provides it, so that no config can name a program outside.
 */
export const ScriptsDirectory = Context.Reference<string | null>("blockwatcher/ScriptsDirectory", {
  defaultValue: () => null,
})
