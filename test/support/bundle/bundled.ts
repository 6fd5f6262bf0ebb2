import { tmpdir } from "node:os"
import { join } from "node:path"

/** Where Node keeps compiled sources by default; without it each start compiles everything again. */
export const COMPILE_CACHE = join(tmpdir(), "node-compile-cache")

/** Names the bundle's module in the environment of the tests. */
export const BUNDLE = "BLOCKWATCHER_TEST_BUNDLE"

/** What Node is told so that the program starts from the bundle of its packages; its own sources are run as they are. */
export const fromBundle = (): ReadonlyArray<string> => {
  const module = process.env[BUNDLE]
  return module === undefined ? [] : ["--import", module]
}
