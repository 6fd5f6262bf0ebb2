import { Effect, Exit, Result, Scope } from "effect"
import type { SinkDefinition } from "../model/resource.ts"
import { SinkHandle, type SinkRuntime } from "../pipeline/sink-handle.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { Egress } from "../plugin/egress.ts"
import { makeInTime } from "../plugin/make-in-time.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { Stored } from "../storage/stored.ts"

interface SinkEntry {
  stored: Stored<SinkDefinition>
  readonly handle: SinkHandle
  scope: Scope.Closeable
}

/** The sinks of this process: their definitions and what the workers of all networks deliver through. */
export interface SinkRegistry {
  readonly all: () => ReadonlyArray<Stored<SinkDefinition>>
  readonly get: (id: string) => Stored<SinkDefinition> | undefined
  /** A handle for any id: that of an unknown sink waits until the sink is put. */
  readonly handle: (id: string) => SinkHandle
  /** The longest that one attempt of any of them may take, in ms. */
  readonly longestAttemptMs: () => number
  /** Builds the sink, and answers what swaps it in; one that cannot be built leaves a handle with its error. */
  readonly build: (stored: Stored<SinkDefinition>) => Effect.Effect<Effect.Effect<void>>
  /** Builds the sink and swaps it in. */
  readonly put: (stored: Stored<SinkDefinition>) => Effect.Effect<void>
  readonly remove: (id: string) => Effect.Effect<void>
}

const buildRuntime = Effect.fnUntraced(function* (
  plugins: Plugins["Service"],
  definition: SinkDefinition,
): Effect.fn.Return<
  { readonly runtime: SinkRuntime | null; readonly error: string | null },
  never,
  Scope.Scope | Egress | Secrets
> {
  const plugin = plugins.sink(definition.module)
  if (plugin === undefined) return { runtime: null, error: `no sink plugin is named "${definition.module}"` }
  const config = decodeConfig(plugin.config, definition.config, plugin.sensitive)
  if (Result.isFailure(config)) {
    return { runtime: null, error: config.failure.map(({ path, message }) => `config.${path}: ${message}`).join("; ") }
  }
  const { retry, throttle, aggregate, concurrency } = definition
  return yield* Effect.match(makeInTime(plugin.make(config.success)), {
    onFailure: ({ reason }) => ({ runtime: null, error: reason }),
    onSuccess: (sink) => ({ runtime: { sink, retry, throttle, aggregate, concurrency }, error: null }),
  })
})

export const makeSinkRegistry = Effect.fnUntraced(function* (
  plugins: Plugins["Service"],
): Effect.fn.Return<SinkRegistry, never, Scope.Scope | Egress | Secrets> {
  const context = yield* Effect.context<Egress | Secrets>()
  const parent = yield* Effect.scope
  const entries = new Map<string, SinkEntry>()
  /** Handles of sinks that rows name but no resource does (yet). */
  const orphans = new Map<string, SinkHandle>()

  const build = Effect.fnUntraced(function* (stored: Stored<SinkDefinition>) {
    const { definition } = stored
    const scope = yield* Scope.fork(parent)
    const { runtime, error } = yield* buildRuntime(plugins, definition).pipe(
      Scope.provide(scope),
      Effect.provideContext(context),
    )
    if (error !== null) yield* Effect.logError(`sink ${definition.id} is FAILED: ${error}`)
    return swapIn(stored, scope, runtime, error)
  })

  const put = (stored: Stored<SinkDefinition>) => Effect.flatten(build(stored))

  const swapIn = Effect.fnUntraced(function* (
    stored: Stored<SinkDefinition>,
    scope: Scope.Closeable,
    runtime: SinkRuntime | null,
    error: string | null,
  ) {
    const { definition } = stored
    const entry = entries.get(definition.id)
    if (entry === undefined) {
      const handle = orphans.get(definition.id) ?? new SinkHandle(null, null)
      orphans.delete(definition.id)
      entries.set(definition.id, { stored, handle, scope })
      handle.replace(runtime, error, definition.buffer === "DURABLE")
      return
    }
    const old = entry.scope
    entry.stored = stored
    entry.scope = scope
    entry.handle.replace(runtime, error, definition.buffer === "DURABLE")
    yield* Scope.close(old, Exit.void)
  })

  return {
    all: () => [...entries.values()].map(({ stored }) => stored),
    get: (id) => entries.get(id)?.stored,
    handle: (id) => {
      const existing = entries.get(id)?.handle ?? orphans.get(id)
      if (existing !== undefined) return existing
      const orphan = SinkHandle.missing(id)
      orphans.set(id, orphan)
      return orphan
    },
    longestAttemptMs: () =>
      Math.max(0, ...[...entries.values()].map(({ handle }) => handle.runtime?.sink.timeoutMs ?? 0)),
    build,
    put,
    remove: Effect.fnUntraced(function* (id: string) {
      const entry = entries.get(id)
      if (entry === undefined) return
      entries.delete(id)
      orphans.set(id, entry.handle)
      entry.handle.remove(id)
      entry.handle.pause(null)
      yield* Scope.close(entry.scope, Exit.void)
    }),
  }
})
