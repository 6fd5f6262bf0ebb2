import { Clock, Effect, Metric, Result, Schedule, type Scope } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { NetworkDefinition } from "../model/resource.ts"
import type { InterestVersions } from "../pipeline/interest-versions.ts"
import { untilStored } from "../pipeline/persist.ts"
import type { Pipeline, PipelineFault } from "../pipeline/pipeline.ts"
import type { PipelineStatus } from "../pipeline/status.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { Egress } from "../plugin/egress.ts"
import { PluginRefused, type SourceRefused, type SourceUnavailable } from "../plugin/error.ts"
import { makeInTime } from "../plugin/make-in-time.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { Source, SourceOutcome, SourceRecord } from "../plugin/source.ts"
import { withinNone } from "../plugin/tracing.ts"
import type { Storage } from "../storage/storage.ts"

/** How many recorded hashes a source gets at least to verify its resume with. */
const ANCHORS = 4096

const startBackoff = Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced("10 seconds")]).pipe(
  Schedule.jittered,
)

/** Builds a network's source from its definition. */
export const buildSource = Effect.fnUntraced(function* (plugins: Plugins["Service"], definition: NetworkDefinition) {
  const plugin = plugins.source(definition.module)
  if (plugin === undefined) {
    return yield* new PluginRefused({ reason: `no source plugin is named "${definition.module}"` })
  }
  const config = decodeConfig(plugin.config, definition.config, plugin.sensitive)
  if (Result.isFailure(config)) {
    const reason = config.failure.map(({ path, message }) => `config.${path}: ${message}`).join("; ")
    return yield* new PluginRefused({ reason })
  }
  return yield* makeInTime(plugin.make(config.success))
})

/** Records of a source that are read at once. */
const RECORDS = 5000

const readRecords = Effect.fnUntraced(function* (storage: Storage["Service"], network: string, status: PipelineStatus) {
  const records: Array<SourceRecord> = []
  while (true) {
    const after = records.at(-1) ?? null
    const page = yield* storage.records(network, { after, limit: RECORDS }).pipe(untilStored(status))
    for (const record of page) records.push(record)
    if (page.length < RECORDS) return records
  }
})

/** Resolves the start of a network that has none; an unreachable feed is asked again for ever. */
const resolveStart = (source: Source<unknown>, status: PipelineStatus): Effect.Effect<Cursor, SourceRefused> =>
  source.start.pipe(
    Effect.tapError((error) => {
      if (error._tag !== "SourceUnavailable") return Effect.void
      const news = status.source === null
      status.source = error.reason
      return news ? Effect.logWarning(`the source cannot start: ${error.reason}; it is tried again`) : Effect.void
    }),
    Effect.retry({ schedule: startBackoff, while: (error) => error._tag === "SourceUnavailable" }),
    Effect.catchTag("SourceUnavailable", (error) => Effect.die(error)),
  )

/** What a source run is given. */
interface SourceRunOptions {
  readonly plugins: Plugins["Service"]
  readonly definition: NetworkDefinition
  readonly storage: Storage["Service"]
  readonly pipeline: Pipeline
  readonly status: PipelineStatus
  readonly interests: InterestVersions
  /** How far behind the checkpoint deliveries are kept, in primaries. */
  readonly journalDepth: number
}

/**
 * Runs a network's source once, from where its pipeline stands. Ends as the source ends. What the source measures and
 * traces names the network.
 */
export const runSource = (options: SourceRunOptions) => {
  const network = options.definition.id
  return runOnce(options).pipe(
    Effect.provideService(Metric.CurrentMetricAttributes, { network }),
    Effect.annotateSpans("blockwatcher.network", network),
    // It outlives whatever started it.
    withinNone,
  )
}

const runOnce = Effect.fnUntraced(function* (
  options: SourceRunOptions,
): Effect.fn.Return<
  SourceOutcome,
  PluginRefused | SourceRefused | SourceUnavailable | PipelineFault,
  Scope.Scope | Egress | Secrets
> {
  const { definition, storage, pipeline, status, interests } = options
  status.reading = false
  const source: Source<unknown> = yield* buildSource(options.plugins, definition)
  // What an earlier run emitted must be minted before this one asks where to go on.
  status.source = "waits until what was read before is matched and handed to the sinks"
  yield* pipeline.settled
  status.source = null
  if (pipeline.minted() === null) {
    const start = yield* resolveStart(source, status)
    yield* pipeline.begin(start).pipe(untilStored(status))
    status.source = null
  }
  const cursor = pipeline.minted()!
  const depth = options.journalDepth
  const limit = Math.max(ANCHORS, depth + 1)
  const anchors = yield* storage.anchors(definition.id, cursor.primary, limit).pipe(untilStored(status))
  const records = yield* readRecords(storage, definition.id, status)
  const row = yield* storage.pipeline(definition.id).pipe(untilStored(status))
  /** The first sign of life of this run ends the trouble of the one before; later trouble is the source's to tell. */
  const showsReading = Effect.sync(() => {
    if (!status.reading) status.source = null
    status.reading = true
  })
  return yield* source.run({
    resume: { cursor, anchors, depth, records, start: row?.start ?? null },
    interests: Effect.sync(() => interests.current),
    emit: (batch) => Effect.andThen(showsReading, pipeline.emit(batch)),
    late: pipeline.late,
    head: (head) =>
      Effect.andThen(
        showsReading,
        Effect.map(Clock.currentTimeMillis, (now) => {
          status.head = head
          status.headAt = now
        }),
      ),
    trouble: (reason) =>
      Effect.sync(() => {
        status.source = reason
      }),
  })
})
