import { Console, Deferred, Effect, Layer } from "effect"
import type { Environment } from "../environment.ts"
import { GraphqlServer } from "../http.ts"
import { followSeeds } from "../seeds.ts"
import type { TracingEnvironment } from "../tracing/environment.ts"
import { banner } from "./banner.ts"
import type { Engine } from "./engine.ts"

/** Requests that are under way when the server ends get so long, of the whole time to drain. */
const REQUEST_SHARE = 0.25
/** What lies between the end of the drain and an exit by force. */
const GRACE_MS = 2_000

/**
 * Runs the engine, the seed files and the control plane until it is interrupted; then drains. No network runs before the
 * server listens and the seed files are applied, so that a start that is refused leaves everything as it was. Ends the
 * process by force when the drain takes longer than it may.
 *
 * @param makeEngine the engine, whose networks wait for its argument
 */
export const runServer = <E>(
  environment: Environment,
  makeEngine: (startAfter: Effect.Effect<void>) => Layer.Layer<Engine, E>,
  devnet?: { readonly urls: ReadonlyArray<string>; readonly token: string },
) =>
  Effect.flatMap(Deferred.make<void>(), (ready) =>
    Effect.gen(function* () {
      const { url } = yield* GraphqlServer
      if (environment.seedsDir !== null) yield* followSeeds(environment.seedsDir)
      yield* Deferred.succeed(ready, undefined)
      yield* Console.log(banner({ url, environment, ...(devnet === undefined ? {} : { devnet }) }))
      return yield* Effect.never
    }).pipe(
      Effect.onInterrupt(() => forceEnd(environment.drainTimeoutMs + GRACE_MS)),
      Effect.scoped,
      Effect.provide(
        GraphqlServer.layer({
          host: environment.host,
          port: environment.port,
          token: environment.apiToken,
          closeTimeoutMs: environment.drainTimeoutMs * REQUEST_SHARE,
        }).pipe(
          Layer.provideMerge(makeEngine(Deferred.await(ready))),
          // It ends last: how deliveries end is traced as well.
          Layer.provide(environment.tracing === null ? Layer.empty : loadTracing(environment.tracing)),
        ),
      ),
    ),
  )

/** What exports traces takes a while to load, which a server without them need not wait for. */
const loadTracing = (environment: TracingEnvironment) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("../tracing/layer.ts")),
      ({ tracingLayer }) => tracingLayer(environment),
    ),
  )

const forceEnd = (afterMs: number) =>
  Effect.logInfo("ending: finishing what is in flight (once more to end at once)").pipe(
    Effect.andThen(
      Effect.sync(() => {
        // A plain timer, because nothing of the runtime may be needed to end it.
        setTimeout(() => {
          console.error(`blockwatcher did not finish within ${afterMs} ms and is ended`)
          process.exit(1)
        }, afterMs).unref()
      }),
    ),
  )
