import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const findRoot = (directory: string): string =>
  existsSync(join(directory, "package.json")) ? directory : findRoot(dirname(directory))

/** The folder of this package: the same from the sources and from what was compiled of them. */
export const packageRoot = findRoot(import.meta.dirname)
