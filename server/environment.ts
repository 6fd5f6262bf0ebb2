import { ConfigProvider, Effect, FileSystem, Option, type Redacted, Schema } from "effect"
import { closest } from "./closest.ts"
import {
  DEVNET_URLS,
  displayed,
  parseDatabase,
  parseCidrs,
  parseDirectoryName,
  parseHost,
  parseInteger,
  parseToken,
} from "./environment-values.ts"
import type { Database } from "./environment-values.ts"
import { readVariable, type Variable } from "./environment-reader.ts"
import { readTracing, type TracingEnvironment } from "./tracing/environment.ts"

/** What the server is configured by. */
export interface Environment {
  readonly database: Database
  readonly host: string
  readonly port: number
  /** A folder of plugins beside the built-in ones. */
  readonly pluginsDir: string | null
  readonly seedsDir: string | null
  /** In primaries (blocks). */
  readonly journalDepth: number
  /** In feed items a network. */
  readonly feedRetention: number
  readonly apiToken: Redacted.Redacted | null
  readonly scriptsDir: string | null
  /** CIDRs that may be dialled beside public addresses. */
  readonly egressAllow: ReadonlyArray<string>
  readonly drainTimeoutMs: number
  /** Null when traces are exported nowhere. */
  readonly tracing: TracingEnvironment | null
}

/** Variables hold what they must not. Lists all of them; shows no secret. */
export class EnvironmentRefused extends Schema.TaggedError<EnvironmentRefused>()("EnvironmentRefused", {
  problems: Schema.Array(Schema.String),
}) {
  override get message() {
    return ["the environment was refused:", ...this.problems.map((problem) => `  ${problem}`)].join("\n")
  }
}

/** What stands for variables that are not set; by command. */
export interface EnvironmentDefaults {
  readonly database: Database
  readonly seedsDir: string | null
}

const serveDefaults: EnvironmentDefaults = {
  database: { kind: "sqlite", path: "data/blockwatcher.db" },
  seedsDir: null,
}

const PREFIX = "BLOCKWATCHER_"

/**
 * Reads the BLOCKWATCHER_ variables, and those of OpenTelemetry, from the ConfigProvider. All bad values are reported at
 * once; names of the first kind that mean nothing are warned about, for they are mostly misspelt.
 */
export const readEnvironment = Effect.fnUntraced(function* (defaults: EnvironmentDefaults = serveDefaults) {
  const problems: Array<string> = []
  // Those of the devnet are read elsewhere.
  const names: Array<string> = [...DEVNET_URLS]

  const read = <A>(name: string, parse: Variable<A>["parse"], byDefault: A) => {
    names.push(PREFIX + name)
    return readVariable(problems, {
      name: PREFIX + name,
      parse,
      byDefault,
      shown: (text) => displayed(name, text),
      // An empty token is no token at all, and would leave the server open to everyone.
      mayNotBeEmpty: name === "API_TOKEN",
    })
  }

  const directory = (name: string, byDefault: string | null) =>
    Effect.gen(function* () {
      const path = yield* read<string | null>(name, parseDirectoryName, byDefault)
      if (path === null) return null
      const files = yield* FileSystem.FileSystem
      const info = yield* Effect.option(files.stat(path))
      if (Option.isNone(info) || info.value.type !== "Directory") {
        problems.push(`${PREFIX}${name} is ${JSON.stringify(path)}: expected a directory that exists`)
      }
      return path
    })

  const environment: Environment = {
    database: yield* read("DATABASE_URL", parseDatabase, defaults.database),
    host: yield* read("HOST", parseHost, "127.0.0.1"),
    port: yield* read("PORT", parseInteger(0, 65_535), 4000),
    pluginsDir: yield* directory("PLUGINS_DIR", null),
    seedsDir: yield* directory("SEEDS_DIR", defaults.seedsDir),
    journalDepth: yield* read("JOURNAL_DEPTH", parseInteger(1, 1_000_000_000), 1024),
    feedRetention: yield* read("FEED_RETENTION", parseInteger(1, 1_000_000_000), 100_000),
    apiToken: yield* read<Redacted.Redacted | null>("API_TOKEN", parseToken, null),
    scriptsDir: yield* directory("SCRIPTS_DIR", null),
    egressAllow: yield* read<ReadonlyArray<string>>("EGRESS_ALLOW", parseCidrs, []),
    drainTimeoutMs: yield* read("DRAIN_TIMEOUT_MS", parseInteger(0, 3_600_000), 20_000),
    tracing: yield* readTracing(problems),
  }

  yield* warnOfUnknown(names)
  if (problems.length > 0) return yield* new EnvironmentRefused({ problems })
  return environment
})

const warnOfUnknown = Effect.fnUntraced(function* (known: ReadonlyArray<string>) {
  const provider = yield* ConfigProvider.ConfigProvider
  for (const name of yield* namesUnder(provider, [PREFIX.slice(0, -1)])) {
    if (known.includes(name)) continue
    const suggestion = closest(name, known)
    yield* Effect.logWarning(
      `${name} is set but means nothing${suggestion === null ? "" : `; did you mean ${suggestion}?`}`,
    )
  }
})

const namesUnder = (
  provider: ConfigProvider.ConfigProvider,
  path: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<string>, ConfigProvider.SourceError> =>
  Effect.gen(function* () {
    const node = yield* provider.load(path)
    if (node === undefined) return []
    const own = node.value === undefined ? [] : [path.join("_")]
    const segments = node._tag === "Record" ? [...node.keys] : []
    const below = yield* Effect.forEach(segments, (segment) => namesUnder(provider, [...path, segment]))
    return [...own, ...below.flat()]
  })
