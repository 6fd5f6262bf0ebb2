import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { bundlePackages } from "./build.ts"
import { BUNDLE, COMPILE_CACHE, fromBundle } from "./bundled.ts"

const root = join(import.meta.dirname, "../../..")

const PROGRAM = [
  "server/index.ts",
  "core/storage/postgres/layer.ts",
  "plugins/sources/evm-rpc/index.ts",
  "plugins/sinks/webhook/index.ts",
]

/** Loads the program once, so that Node keeps it compiled: a server that is killed keeps nothing. */
const compile = async (): Promise<void> => {
  const imports = PROGRAM.map((file) => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)}`)
  const told = ["--conditions=blockwatcher-source", "--input-type=module", "-e", imports.join("\n")]
  await promisify(execFile)(process.execPath, [...fromBundle(), ...told], {
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
  })
}

/** Before all tests: makes the bundle that the servers of the tests start from. */
export default async (): Promise<void> => {
  process.env[BUNDLE] = await bundlePackages()
  if (!existsSync(COMPILE_CACHE)) await compile()
}
