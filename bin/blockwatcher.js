#!/usr/bin/env node
import { existsSync } from "fs"
import module from "module"
import { fileURLToPath, pathToFileURL } from "url"

const NEEDED = 24
const root = fileURLToPath(new URL("..", import.meta.url))
const source = root + "server/cli/main.ts"

if (Number(process.versions.node.split(".")[0]) < NEEDED) {
  console.error(
    "blockwatcher needs Node " +
      NEEDED +
      " or newer, and this is " +
      process.versions.node +
      ": in a checkout use `npm start` or `npm run serve`, which bring it; elsewhere install Node " +
      NEEDED +
      ".",
  )
  process.exit(1)
} else {
  // Halves what a start costs from the second one on.
  module.enableCompileCache()
  // A checkout runs its sources; the published package holds what was compiled of them.
  import(pathToFileURL(existsSync(source) ? source : root + "dist/server/cli/main.js").href).catch((error) => {
    console.error(error)
    process.exit(1)
  })
}
