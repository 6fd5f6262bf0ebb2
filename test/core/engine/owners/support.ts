import { Context, Effect, Exit, Layer, Scope } from "effect"
import {
  Blockwatcher,
  type Delivery,
  type HostSink,
  layerSqlite,
  type RuntimeOptions,
  Storage,
} from "../../../../core/index.ts"
import type { Resources } from "../../../../core/index.ts"
import { networkNow, resourcesOf, type Runtime } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"

/** One of the processes that share a database: a runtime with a connection of its own. */
export interface Process {
  readonly runtime: Runtime
  readonly resources: Resources["Service"]
  /** Its storage, as it is beneath what `alter` changed. */
  readonly storage: Storage["Service"]
  /** Ends it, as SIGTERM does. */
  readonly close: Effect.Effect<void>
}

/** Starts a runtime over a database file, with a storage that differs as `alter` says. It ends with the scope at last. */
export const startProcess = Effect.fnUntraced(function* (
  path: string,
  options: Omit<RuntimeOptions<never>, "storage">,
  alter: (storage: Storage["Service"]) => Partial<Storage["Service"]> = () => ({}),
) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.build(layerSqlite({ path })).pipe(Scope.provide(scope))
  const storage = Context.get(context, Storage)
  const altered = Layer.succeed(Storage, { ...storage, ...alter(storage) })
  const runtime = yield* Layer.build(Blockwatcher.layer({ storage: altered, ...options })).pipe(Scope.provide(scope))
  const close = Scope.close(scope, Exit.void)
  return { runtime, resources: resourcesOf(runtime), storage, close } satisfies Process
})

/** What the sinks of several processes were sent, in order. */
export class Sent {
  readonly deliveries: Array<{ readonly by: string; readonly id: string; readonly body: string }> = []

  /** The sink of one of the processes; all of them are the same sink to whoever receives. */
  sink(
    by: string,
    { id = "mine", before = Effect.void, ...over }: Partial<HostSink> & { readonly before?: Effect.Effect<void> } = {},
  ): HostSink {
    const deliver = (_: unknown, { id: delivery, body }: Delivery) =>
      Effect.andThen(
        before,
        Effect.sync(() => {
          this.deliveries.push({ by, id: delivery, body })
        }),
      )
    return { id, retry: { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 2 }, ...over, deliver }
  }

  /** The values of the transfers that were sent, repetitions left out, in the order in which they came first. */
  get values(): ReadonlyArray<number> {
    const first = new Map(this.deliveries.map(({ id, body }) => [id, body]))
    return [...first.values()].map((body) => Number(JSON.parse(body).event.args.value))
  }

  /** Deliveries that came again with another body. */
  get changed(): ReadonlyArray<string> {
    const first = new Map<string, string>()
    return this.deliveries.flatMap(({ id, body }) => {
      const before = first.get(id) ?? body
      first.set(id, before)
      return before === body ? [] : [id]
    })
  }
}

export const waitForState = (runtime: Runtime, state: string, id = "test") =>
  waitUntil(
    `the network ${id} is ${state}`,
    Effect.map(networkNow(runtime, id), (network) => network?.state === state),
  )
