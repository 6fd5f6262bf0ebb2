import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, statSync } from "node:fs"
import { mkdir, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

/** Where clusters are kept that nobody has used, each under the name of what it was made with. */
const FOLDER = join(import.meta.dirname, "../../node_modules/.cache/blockwatcher-test")

/** What the server's user is, if it is another than this process's. */
export interface Ids {
  readonly uid?: number
  readonly gid?: number
}

// A locale whose order is not that of the bytes, as servers mostly have one.
const FLAGS = [
  ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"],
  ["--locale-provider=icu", "--icu-locale=en-US", "--locale=C"],
].flat()

/** Files keep their owner and their rights. */
const copy = (from: string, to: string) => run("cp", ["-a", from, to])

/** Makes the files of a server that has no databases yet: a copy is made sooner than they are. */
export const makeCluster = async (initdb: string, data: string, ids: Ids): Promise<void> => {
  const { size, mtimeMs } = statSync(initdb)
  const name = createHash("sha256").update(JSON.stringify([size, mtimeMs, FLAGS, ids]))
  const kept = join(FOLDER, `postgres-${name.digest("hex").slice(0, 16)}`)
  if (existsSync(kept)) {
    await copy(kept, data)
    return
  }
  await run(initdb, [`--pgdata=${data}`, ...FLAGS], { ...ids, cwd: dirname(data) })
  const unfinished = `${kept}.${process.pid}`
  await mkdir(FOLDER, { recursive: true })
  await copy(data, unfinished)
  // Another process may have made the same meanwhile.
  await rename(unfinished, kept).catch(() => rm(unfinished, { recursive: true }))
}
