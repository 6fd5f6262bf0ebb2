import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"

/** Paths for databases in a folder that is removed behind the tests of the file. */
export const databaseFiles = (): ((name: string) => string) => {
  const folder = mkdtempSync(join(tmpdir(), "blockwatcher-storage-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return (name) => join(folder, name)
}

/** How many transactions a database's write-ahead log holds: its frames that end one. */
export const commitsInLog = (database: string): number => {
  const log = readFileSync(`${database}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  const salt = log.readBigUInt64BE(16)
  let commits = 0
  for (let at = 32; at + frame <= log.length && log.readBigUInt64BE(at + 8) === salt; at += frame) {
    if (log.readUInt32BE(at + 4) !== 0) commits++
  }
  return commits
}
