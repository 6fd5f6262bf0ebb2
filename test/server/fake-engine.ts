import { Deferred, Effect, Layer, Stream } from "effect"
import { Actions } from "../../core/actions/actions.ts"
import { DeliveryNotFound } from "../../core/actions/error.ts"
import { Blockwatcher, type Health } from "../../core/engine/blockwatcher.ts"
import { type DeadLetter, DeadLetters } from "../../core/engine/dead-letters.ts"
import { Conflict, InvalidPosition, NotFound, Refused, StalePosition } from "../../core/engine/error.ts"
import { Feed, type FeedItem, type MatchEmitted } from "../../core/engine/feed.ts"
import {
  type CheckpointView,
  type MatchView,
  type MonitorView,
  type NetworkView,
  type PutOptions,
  Resources,
  type SinkView,
} from "../../core/engine/resources.ts"
import { defaultRetry } from "../../core/model/policy.ts"
import { type SeedFile, SeedsRefused, SeedTarget } from "../../server/seeds.ts"

export const network = (fields: Partial<NetworkView> = {}): NetworkView => ({
  id: "devnet",
  module: "evm-rpc",
  config: { chain_id: 31337 },
  journalDepth: null,
  revision: "n1",
  state: "RUNNING",
  error: null,
  checkpoint: { network: "devnet", cursor: { primary: 12, secondary: 0 }, updatedAt: 1_700_000_000_000 },
  head: { primary: 15, secondary: 0 },
  lag: 3,
  inFlightEvents: 2,
  deadLetterCount: 1,
  ...fields,
})

export const monitor = (fields: Partial<MonitorView> = {}): MonitorView => ({
  id: "transfers",
  network: "devnet",
  selector: { kind: "event" },
  predicate: null,
  gate: null,
  sinks: ["alerts"],
  enabled: true,
  revision: "m1",
  effectiveFrom: { primary: 1, secondary: 2_147_483_647 },
  error: null,
  ...fields,
})

export const sink = (fields: Partial<SinkView> = {}): SinkView => ({
  id: "alerts",
  module: "webhook",
  config: { url: "***" },
  retry: defaultRetry,
  throttle: null,
  aggregate: null,
  concurrency: 1,
  buffer: "MEMORY",
  revision: "s1",
  state: "RUNNING",
  error: null,
  ...fields,
})

export const match = (number: number, fields: Partial<MatchView> = {}): MatchView => ({
  id: `match-${number}`,
  monitor: "transfers",
  network: "devnet",
  event: { kind: "event", args: { value: `${number}` } },
  cursor: { primary: number, secondary: 1_048_576 },
  time: 1_700_000_000_000,
  ...fields,
})

export const emitted = (number: number): MatchEmitted => ({
  _tag: "MatchEmitted",
  position: `p${number}`,
  network: "devnet",
  match: match(number),
  life: 1,
  emission: null,
  late: false,
})

export const deadLetter = (number: number): DeadLetter => ({
  id: `letter-${number}`,
  seq: number,
  died: number,
  network: "devnet",
  sink: "alerts",
  monitor: "transfers",
  matchId: `match-${number}`,
  life: 1,
  cursor: { primary: number, secondary: 0 },
  kind: "match",
  attempts: 8,
  reason: "permanent: 404",
  createdAt: 1_700_000_000_000,
  payload: JSON.stringify({ id: `match-${number}`, event: {} }),
  ended: false,
  replayable: true,
  whyNot: null,
})

const noSuchThing = Effect.die(new Error("this engine has no rows and no sinks"))

/** The engine's services in memory, with levers for tests. */
export class FakeEngine {
  networks: Array<NetworkView> = [network()]
  monitors: Array<MonitorView> = [monitor()]
  sinks: Array<SinkView> = [sink()]
  letters: Array<DeadLetter> = [deadLetter(1), deadLetter(2)]
  items: Array<FeedItem> = []
  checkpoints: Array<CheckpointView> = []
  health: Health = {
    networks: [{ id: "devnet", state: "RUNNING", error: null, owes: [] }],
    sinks: [{ id: "log", state: "RUNNING", error: null }],
    storage: null,
  }
  /** What each call was given. */
  readonly calls: Array<{ readonly name: string; readonly input: unknown; readonly options?: unknown }> = []
  /** How often the lists of resources were read. */
  reads = 0
  /** Items that streams handed out, and streams that run. */
  pulled = 0
  running = 0
  /** The outcome of the next reads of networks, instead of the list. */
  failure: Effect.Effect<never, any> | null = null
  /** What ends open streams at the next signal, if anything. */
  streamFailure: Effect.Effect<never, any> | null = null
  seeds: Array<ReadonlyArray<SeedFile>> = []
  #signal = Deferred.makeUnsafe<void>()

  publish(...items: ReadonlyArray<FeedItem>): void {
    this.items.push(...items)
    this.wake()
  }

  wake(): void {
    const signal = this.#signal
    this.#signal = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(signal, Effect.void)
  }

  #follow<A>(items: ReadonlyArray<A>, start: number): Stream.Stream<A, any> {
    const next = (index: number): Effect.Effect<readonly [A, number], any> =>
      Effect.suspend(() => {
        if (this.streamFailure !== null) return this.streamFailure
        if (index < items.length) {
          this.pulled++
          return Effect.succeed([items[index]!, index + 1] as const)
        }
        return Effect.andThen(Deferred.await(this.#signal), next(index))
      })
    return Stream.unfold(start, next).pipe(
      Stream.onStart(Effect.sync(() => void this.running++)),
      Stream.ensuring(Effect.sync(() => void this.running--)),
    )
  }

  #put<A extends { readonly id: string; readonly revision: string }>(
    name: string,
    list: () => Array<A>,
    make: (input: any) => A,
  ) {
    return (input: unknown, options?: PutOptions) =>
      Effect.suspend((): Effect.Effect<A, Refused | Conflict> => {
        this.calls.push({ name, input, options })
        const { id } = input as { id: string }
        if (id === "refused") {
          return Effect.fail(
            new Refused({
              resource: `${name} refused`,
              problems: [
                { path: "selector.event", message: "is no event" },
                { path: "predicate", message: "does not compile" },
              ],
            }),
          )
        }
        const stored = list().find((item) => item.id === id)
        if (options?.ifRevision !== undefined && options.ifRevision !== stored?.revision) {
          return Effect.fail(new Conflict({ reason: `${id} has revision ${stored?.revision}` }))
        }
        const made = make(input)
        if (options?.validateOnly !== true) {
          const others = list().filter((item) => item.id !== id)
          list().splice(0, Number.POSITIVE_INFINITY, ...others, made)
        }
        return Effect.succeed(made)
      })
  }

  #delete(name: string, list: () => Array<{ readonly id: string }>) {
    return (id: string, options?: { readonly discard?: boolean }) =>
      Effect.suspend((): Effect.Effect<void, NotFound | Conflict> => {
        this.calls.push({ name, input: id, options })
        const index = list().findIndex((item) => item.id === id)
        if (index < 0) return Effect.fail(new NotFound({ resource: id }))
        if (id === "owes" && options?.discard !== true)
          return Effect.fail(new Conflict({ reason: "it owes 3 deliveries" }))
        list().splice(index, 1)
        return Effect.void
      })
  }

  #pauseSink(name: string, id: string, change: Pick<SinkView, "state" | "error">) {
    return Effect.suspend((): Effect.Effect<SinkView, NotFound> => {
      this.calls.push({ name, input: id })
      const index = this.sinks.findIndex((candidate) => candidate.id === id)
      if (index < 0) return Effect.fail(new NotFound({ resource: `sink "${id}"` }))
      this.sinks[index] = { ...this.sinks[index]!, ...change }
      return Effect.succeed(this.sinks[index]!)
    })
  }

  #operate(name: string, id: string, options: unknown, change: Partial<NetworkView>) {
    return Effect.suspend(() => {
      this.calls.push({ name, input: id, options })
      const found = this.networks.find((candidate) => candidate.id === id)
      return found === undefined
        ? Effect.fail(new NotFound({ resource: `network "${id}"` }))
        : Effect.succeed({ ...found, ...change })
    })
  }

  #list<A>(list: () => ReadonlyArray<A>): Effect.Effect<ReadonlyArray<A>, any> {
    return Effect.suspend(() => {
      this.reads++
      return this.failure ?? Effect.succeed([...list()])
    })
  }

  readonly layer = Layer.mergeAll(
    Layer.sync(Resources, () =>
      Resources.of({
        networks: this.#list(() => this.networks),
        monitors: this.#list(() => this.monitors),
        sinks: this.#list(() => this.sinks),
        plugins: Effect.succeed([
          { name: "evm-rpc", kind: "source", source: "built in", error: null, eventTime: true, resumable: true },
          {
            name: "broken",
            kind: "unknown",
            source: "plugins/broken.ts",
            error: "Unexpected token",
            eventTime: null,
            resumable: null,
          },
        ]),
        putNetwork: this.#put(
          "putNetwork",
          () => this.networks,
          (input) => network({ ...input, revision: "n2" }),
        ),
        putMonitor: this.#put(
          "putMonitor",
          () => this.monitors,
          (input) => monitor({ ...input, revision: "m2" }),
        ),
        putSink: this.#put(
          "putSink",
          () => this.sinks,
          ({ retry, ...input }) => sink({ ...input, retry: { ...defaultRetry, ...retry }, revision: "s2" }),
        ),
        deleteNetwork: this.#delete("deleteNetwork", () => this.networks),
        deleteMonitor: this.#delete("deleteMonitor", () => this.monitors),
        deleteSink: this.#delete("deleteSink", () => this.sinks),
        pauseSink: (id) => this.#pauseSink("pauseSink", id, { state: "PAUSED", error: "by an operator" }),
        resumeSink: (id) => this.#pauseSink("resumeSink", id, { state: "RUNNING", error: null }),
        pauseNetwork: (id) => this.#operate("pauseNetwork", id, undefined, { state: "PAUSED" }),
        resumeNetwork: (id) => this.#operate("resumeNetwork", id, undefined, { state: "RUNNING" }),
        rewindNetwork: (id, to) => this.#operate("rewindNetwork", id, to, { state: "INVALIDATING" }),
        testMonitor: (input, primary) =>
          Effect.sync(() => {
            this.calls.push({ name: "testMonitor", input, options: primary })
            return [match(primary)]
          }),
      }),
    ),
    Layer.sync(Feed, () =>
      Feed.of({
        open: (request) =>
          Effect.suspend((): ReturnType<Feed["Service"]["open"]> => {
            this.calls.push({ name: "open", input: request })
            const { after } = request
            if (after === "trimmed") return Effect.fail(new StalePosition({ oldest: "p1" }))
            const index = this.items.findIndex((item) => item.position === after)
            if (after !== null && after !== "0" && index < 0) {
              return Effect.fail(new InvalidPosition({ reason: "this feed did not make that position" }))
            }
            const start = after === null ? this.items.length : index + 1
            return Effect.succeed(
              Stream.filter(this.#follow(this.items, start), (item) => request.kinds.includes(item._tag)),
            )
          }),
        checkpoints: (id) =>
          Stream.filter(this.#follow(this.checkpoints, 0), (view) => id === undefined || view.network === id),
        matches: (request) =>
          Effect.sync(() => {
            this.calls.push({ name: "matches", input: request })
            const items = this.items.filter((item) => item._tag === "MatchEmitted").slice(0, request.first)
            return {
              items: items.map((item) => ({ cursor: item.position, match: item.match })),
              hasNextPage: items.length < this.items.length,
              endCursor: items.at(-1)?.position ?? "p0",
            }
          }),
      }),
    ),
    Layer.sync(DeadLetters, () =>
      DeadLetters.of({
        list: (request) =>
          Effect.sync(() => {
            this.calls.push({ name: "deadLetters", input: request })
            const items = this.letters.slice(0, request.first)
            return {
              items: items.map((node) => ({ cursor: `c${node.died}`, node })),
              hasNextPage: items.length < this.letters.length,
              endCursor: items.length === 0 ? null : `c${items.at(-1)!.died}`,
              totalCount: this.letters.length,
            }
          }),
        // What takes letters away needs rows and sinks: it is tested over a real engine.
        replay: () => noSuchThing,
        replayAll: () => noSuchThing,
        endReplays: Effect.void,
        discard: () => noSuchThing,
        discardAll: () => noSuchThing,
        offerRetractions: () => noSuchThing,
      }),
    ),
    // It has no actions: they are tested over a real engine.
    Layer.sync(Actions, () =>
      Actions.of({
        list: () => Effect.succeed({ deliveries: [], next: null }),
        get: (id) => Effect.fail(new DeliveryNotFound({ id })),
        count: () => Effect.succeed(0),
        counts: Effect.succeed([]),
        calls: () => Effect.succeed(new Map()),
        overview: () => Effect.succeed([]),
        retry: (id) => Effect.fail(new DeliveryNotFound({ id })),
        retryAll: () => Effect.succeed({ changed: 0, skipped: 0, next: null }),
        resolve: (id) => Effect.fail(new DeliveryNotFound({ id })),
        cancel: (id) => Effect.fail(new DeliveryNotFound({ id })),
        cancelAll: () => Effect.succeed({ changed: 0, skipped: 0, next: null }),
        emit: () => Effect.die(new Error("this engine has no events")),
        changes: Stream.never,
      }),
    ),
    Layer.sync(Blockwatcher, () => Blockwatcher.of({ health: Effect.sync(() => this.health) })),
    Layer.sync(SeedTarget, () => {
      const check = (files: ReadonlyArray<SeedFile>) =>
        Effect.suspend(() => {
          const bad = files.filter((file) => file.text.includes("refuse me"))
          return bad.length === 0
            ? Effect.void
            : Effect.fail(
                new SeedsRefused({ problems: bad.map(({ path }) => ({ path, message: "asks to be refused" })) }),
              )
        })
      return SeedTarget.of({
        check,
        apply: (files) => Effect.tap(check(files), () => Effect.sync(() => this.seeds.push(files))),
      })
    }),
  )
}
