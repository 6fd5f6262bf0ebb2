import { Logger } from "effect"

/** A log for people on a terminal, and one line of `key=value` an entry for everything else. */
export const loggingLayer = Logger.layer([process.stdout.isTTY ? Logger.consolePretty() : Logger.consoleLogFmt])
