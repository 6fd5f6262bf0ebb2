import { Effect, Result, type Scope } from "effect"
import { compareCursors, type Cursor, endOf, nextOf, startOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceBatch, SourceOutcome, SourceRun } from "../../../core/plugin/source.ts"
import { within } from "../../../core/plugin/tracing.ts"
import { RangesAhead, type ReadRange } from "./ahead.ts"
import { Audit } from "./audit.ts"
import { changed } from "./block-reads.ts"
import { deepBatch, nearBatch, type ReadBatch } from "./batches.ts"
import type { Chain, ExpectedBlock, KnownLogs } from "./chain.ts"
import type { Config } from "./config.ts"
import { Factories } from "./factories.ts"
import { Past } from "./factory-past.ts"
import { ForkWatch } from "./fork-watch.ts"
import type { HeadHints } from "./head-hints.ts"
import { type HeadWatch, makeHeadWatch } from "./head-watch.ts"
import type { Header } from "./header.ts"
import { proveHead } from "./proven-head.ts"
import { RecentHeaders } from "./recent-headers.ts"
import { type Routing, routingOf } from "./routing.ts"
import { waitAfter } from "./rpc/backoff.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"
import type { Selector } from "./selector.ts"
import { makeDepth } from "./target.ts"
import { HashWindow } from "./window.ts"

/** Hashes of handed-over blocks that are kept at least, to find where a fork began. */
const KEPT_HASHES = 2048

/** Blocks this close to the head are read one by one, with their parent hashes checked. */
export const NEAR_BLOCKS = 64

/** Near blocks that are handed over in one batch. */
const NEAR_BATCH = 32

/** Ranges that are read before the head is asked for again. */
const ROUND_RANGES = 64

/** A chain that changes while it is read fails a few times; from then on that is told as trouble. */
const SILENT_FAILURES = 3

/** Polls at which the node is further behind than the block before the next one, until that is told as trouble. */
const PATIENT_POLLS = 10

/** What one step came to: the run's end, or whether there may be more to read at once. */
type Step = SourceOutcome | { readonly _tag: "Advanced" | "Idle"; readonly trouble: string | null }

const advanced: Step = { _tag: "Advanced", trouble: null }
const idle: Step = { _tag: "Idle", trouble: null }

/** How many blocks below the head are read one by one. */
export const nearBlocks = ({ confirmations }: Pick<Config, "confirmations">): number =>
  Math.max(NEAR_BLOCKS, typeof confirmations === "number" ? confirmations : 0)

interface FollowerParts {
  readonly chain: Chain
  readonly providers: Providers
  readonly config: Config
  readonly hints: HeadHints
  readonly watch: HeadWatch
  readonly ahead: RangesAhead
  readonly run: SourceRun<Selector>
}

/** The state of one run. */
class Follower {
  readonly #chain: Chain
  readonly #providers: Providers
  readonly #config: Config
  readonly #hints: HeadHints
  readonly #run: SourceRun<Selector>
  readonly #factories: Factories
  readonly #past: Past
  readonly #routing: Effect.Effect<Routing>
  readonly #known: HashWindow
  readonly #recent = new RecentHeaders()
  readonly #depth: ReturnType<typeof makeDepth>
  readonly #watch: HeadWatch
  readonly #forks: ForkWatch
  readonly #ahead: RangesAhead
  /** Null without one. */
  readonly audit: Audit | null
  #cursor: Cursor
  #verified = false
  /** Whether the newest block that was handed over lies deeper than a reorganisation is expected to reach. */
  #isDeep = false
  #lastSeen: Header | undefined = undefined
  #highest = -1
  #pollsBehind = 0

  constructor({ chain, providers, config, hints, watch, ahead, run }: FollowerParts) {
    this.#chain = chain
    this.#providers = providers
    this.#config = config
    this.#hints = hints
    this.#run = run
    this.#factories = new Factories(run.resume.records)
    const start = run.resume.start ?? startOf(0)
    this.#past = new Past(chain, providers, this.#factories, start, config.requests_per_second)
    this.#routing = routingOf(run.interests, this.#factories)
    // Near the head each block has a hash: what can be taken back lies within as many as that.
    this.#known = new HashWindow(Math.max(KEPT_HASHES, run.resume.depth + 1), run.resume.anchors)
    this.#forks = new ForkWatch(chain, providers, this.#known, config.poll_interval_ms, run.resume)
    this.#depth = makeDepth(config.confirmations)
    this.#watch = watch
    this.#ahead = ahead
    this.audit = config.audit === undefined ? null : new Audit(providers, config, run, this.#routing)
    this.#cursor = run.resume.cursor
  }

  /** The first block that was not handed over whole. */
  get #next(): number {
    return nextOf(this.#cursor)
  }

  /** The block that is read next if the announced head is there: its logs can come along with the head. */
  #expected(routing: Routing): ExpectedBlock | undefined {
    const { awaited } = this.#hints
    const { confirmations } = this.#config
    if (awaited === null || awaited.number - Number(confirmations) !== this.#next) return undefined
    const block = confirmations === 0 ? awaited : this.#recent.at(this.#next)
    return block === undefined ? undefined : { number: block.number, hash: block.hash, routing }
  }

  /** Looks at the head once and reads the next piece behind it, if there is one. */
  readonly step: Effect.Effect<Step, RpcFailure | SourceRefused> = Effect.gen({ self: this }, function* () {
    if (!this.#verified) {
      const invalidated = yield* this.#forks.verify
      if (invalidated !== null) return invalidated
      this.#verified = true
    }
    this.#hints.polling()
    const expected = this.#expected(yield* this.#routing)
    const { latest, others, by, known } = yield* this.#chain.tagged(this.#depth.tags, expected)
    if (latest.number > this.#highest + NEAR_BLOCKS) yield* proveHead(this.#chain, this.#providers, by, latest)
    const prove = this.#prove(by, latest)
    this.#recent.put(latest)
    this.#hints.polled(latest)
    yield* this.#tellHead(latest)
    if (yield* this.#watch.polled(by, latest, this.#hints.isUnmet)) return advanced // others are asked at once
    if (this.#isSuspect(latest)) {
      const invalidated = yield* this.#forks.look
      if (invalidated !== null) return invalidated
    }
    this.#lastSeen = latest
    const target = Math.min(this.#depth.target(latest, others), latest.number)
    yield* this.#routing
    this.#past.settle(this.#cursor)
    if (!this.#past.isKnown && this.#isAtStart) return yield* this.#readPast(latest, null)
    const deepEnd = Math.min(target, latest.number - nearBlocks(this.#config))
    const read =
      this.#next > target
        ? this.#waiting(latest, by)
        : this.#next <= deepEnd
          ? this.#readDeep(deepEnd)
          : this.#readNear(latest, target, known, prove)
    const step = yield* read.pipe(
      Effect.tapError((failure) => (failure._tag === "RpcFailure" && failure.kind === "missing" ? prove : Effect.void)),
    )
    return this.#past.isKnown || step._tag === "Invalidated" ? step : yield* this.#readPast(latest, step)
  })

  /** Whether nothing was ever handed over, so that nobody is kept waiting. */
  get #isAtStart(): boolean {
    const { start } = this.#run.resume
    return start !== null && compareCursors(this.#cursor, start) === 0
  }

  /** Reads a piece of the past of factories, beside the `step` that was taken; in its place if there is none. */
  readonly #readPast = Effect.fnUntraced(function* (this: Follower, latest: Header, step: Step | null) {
    const deepEnd = latest.number - nearBlocks(this.#config)
    const before = yield* this.#routing
    const read = yield* this.#past.read(this.#cursor, { deepEnd, hashOf: (block) => this.#known.hashOf(block) })
    const hasRead = read !== null
    if (hasRead) {
      const empty = { events: [], upTo: this.#cursor }
      // A monitor takes effect with the last of these, which says that all is known: none may be before what it stands for.
      while (this.#factories.isMuch)
        yield* this.#emit({ ...empty, resume: [], interests: before.version, pending: before.pending }, "some")
      const { version, pending } = yield* this.#routing
      // What was handed over before has its hashes; what lies before the first of it has none yet.
      const resume = step === null ? read : []
      yield* this.#emit({ ...empty, resume, interests: version, pending }, "all")
    }
    if (step === null) return { _tag: hasRead ? "Advanced" : "Idle", trouble: this.#past.trouble } satisfies Step
    return hasRead && step._tag === "Idle" ? { ...step, _tag: "Advanced" as const } : step
  })

  readonly #waiting = Effect.fnUntraced(function* (this: Follower, latest: Header, by: Provider) {
    const step: Step = { _tag: "Idle", trouble: this.#behind(latest, by) ?? (yield* this.#watch.trouble) }
    return step
  })

  /** Why the node's blocks cannot be read on although it answers, once that has lasted for a while. */
  #behind(latest: Header, by: Provider): string | null {
    this.#pollsBehind = latest.number < this.#next - 1 ? this.#pollsBehind + 1 : 0
    if (this.#pollsBehind >= PATIENT_POLLS)
      return `${by.client.label} is at block ${latest.number}; waiting until it has block ${this.#next}, the next one to read`
    if (this.#depth.lacking() >= PATIENT_POLLS)
      return `${by.client.label} does not tell the ${this.#config.confirmations} block any more; waiting until a node does`
    return null
  }

  /** A lower head is no reorganisation; another hash at a height that was handed over, or in place of the head, may be. */
  #isSuspect(latest: Header): boolean {
    const ours = this.#known.hashOf(latest.number)
    if (ours !== undefined) return ours !== latest.hash
    const last = this.#lastSeen
    return last !== undefined && latest.hash !== last.hash && latest.number <= last.number
  }

  /** Checks a head when blocks up to it cannot be read: who made it up is left aside, and what was told of it is void. */
  #prove(by: Provider, latest: Header): Effect.Effect<void, RpcFailure> {
    return Effect.suspend(() => {
      const count = Math.max(0, Math.min(NEAR_BATCH, latest.number - this.#next))
      const below = Array.from({ length: count }, (_, i) => this.#next + i)
      return proveHead(this.#chain, this.#providers, by, latest, below)
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          if (by.health.benched) this.#highest = -1
        }),
      ),
    )
  }

  #tellHead(latest: Header): Effect.Effect<void> {
    if (latest.number <= this.#highest) return Effect.void
    this.#highest = latest.number
    this.audit?.head(latest.number)
    return this.#run.head(endOf(latest.number))
  }

  #hand(read: ReadBatch): Effect.Effect<void> {
    const [from, after] = [this.#next, this.#cursor]
    const emitted = within(read.span, this.#emit(read.batch, "all"))
    return Effect.flatMap(emitted, () => this.audit?.add(read, from, after) ?? Effect.void)
  }

  /** Hands a batch over, with what is to be recorded of factories. */
  #emit(batch: SourceBatch, how: "all" | "some"): Effect.Effect<void> {
    const { records, forget } = this.#factories.drain(how)
    const whole = {
      ...batch,
      records: [...records, ...(batch.records ?? [])],
      forget,
      pending: this.#past.explain(batch.pending),
    }
    return Effect.map(this.#run.emit(whole), () => {
      for (const anchor of batch.resume) this.#known.put(anchor)
      this.#cursor = batch.upTo
    })
  }

  /** No variable of a loop holds what was read: the garbage collector would copy it while the next range is read. */
  #handNext(deepEnd: number): Effect.Effect<SourceOutcome | null, RpcFailure | SourceRefused> {
    return this.#ahead.next({ from: this.#next, to: deepEnd }, this.#routing).pipe(
      Effect.flatMap((read) => {
        const { parentHash, by } = read.contents
        return this.#goesOn(this.#next, parentHash) ? this.#handDeep(read) : this.#doubt(by)
      }),
    )
  }

  #handDeep(read: ReadRange): Effect.Effect<null, RpcFailure | SourceRefused> {
    const keptFrom = this.#highest - this.#run.resume.depth
    const batch = deepBatch(this.#chain, read, this.#next, this.#cursor, keptFrom)
    return Effect.as(
      Effect.flatMap(batch, (read) => this.#hand(read)),
      null,
    )
  }

  /** What a provider read does not go on from what was handed over: one of the two is of a fork. */
  readonly #doubt = Effect.fnUntraced(function* (this: Follower, by: Provider) {
    const what = `its block ${this.#next} does not go on from the block before it that was read`
    return (yield* this.#forks.doubt(by, what)) ?? (yield* changed(by, what))
  })

  readonly #readDeep = Effect.fnUntraced(function* (this: Follower, deepEnd: number) {
    if (!this.#isDeep) {
      // The chain went far ahead while nobody could look: a fork of what was handed over shows at once.
      const invalidated = yield* this.#forks.look
      if (invalidated !== null) return invalidated
      this.#isDeep = true
    }
    this.#factories.forgetBehind(this.#cursor)
    for (let i = 0; i < ROUND_RANGES && this.#next <= deepEnd; i++) {
      if (this.audit !== null) yield* this.audit.room
      const invalidated = yield* this.#handNext(deepEnd)
      if (invalidated !== null) return invalidated
    }
    return advanced
  })

  readonly #readNear = Effect.fnUntraced(function* (
    this: Follower,
    latest: Header,
    target: number,
    known: KnownLogs | null,
    prove: Effect.Effect<void, RpcFailure>,
  ) {
    const from = this.#next
    const to = Math.min(target, from + NEAR_BATCH - 1)
    const headers = this.#recent.below(latest, from, to) ?? (yield* this.#chain.headers(from, to))
    const first = headers[0]!
    const isOther = (this.#known.hashOf(first.number) ?? first.hash) !== first.hash
    if (isOther || !this.#goesOn(first.number, first.parentHash)) {
      const invalidated = yield* this.#forks.look
      if (invalidated !== null) return invalidated
      yield* prove
      return idle
    }
    this.#factories.forgetBehind(this.#cursor)
    const routing = yield* this.#routing
    const isKnown = headers.length === 1 && headers[0]!.hash === known?.hash && known.routing === routing
    this.#isDeep = false
    yield* this.#hand(yield* nearBatch(this.#chain, headers, routing, this.#cursor, isKnown ? known : null))
    return this.#next <= target ? advanced : idle
  })

  /** Whether a block of such a parent goes on where the known ones end. */
  #goesOn(block: number, parentHash: string): boolean {
    return (this.#known.hashOf(block - 1) ?? parentHash) === parentHash
  }
}

/** Follows the chain behind `resume` until a fork cuts into what was handed over. Waits out whatever else goes wrong. */
export const runChain = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  config: Config,
  hints: HeadHints,
  run: SourceRun<Selector>,
): Effect.fn.Return<SourceOutcome, SourceRefused, Scope.Scope> {
  const watch = yield* makeHeadWatch(chain, providers, config.poll_interval_ms)
  const ahead = new RangesAhead(chain, providers, yield* Effect.scope, config.requests_per_second)
  const follower = new Follower({ chain, providers, config, hints, watch, ahead, run })
  let told: string | null = null
  const tell = (trouble: string | null) =>
    Effect.suspend(() => {
      if (trouble === told) return Effect.void
      told = trouble
      return run.trouble(trouble)
    })
  const follow = Effect.gen(function* () {
    let failures = 0
    for (;;) {
      const result = yield* Effect.result(follower.step)
      if (Result.isFailure(result)) {
        const { failure } = result
        if (failure._tag === "SourceRefused") return yield* failure
        failures++
        if (failure.kind !== "missing" || failures >= SILENT_FAILURES) yield* tell(failure.reason)
        yield* Effect.sleep(waitAfter(failures, failure.retryAfterMs))
        continue
      }
      const step = result.success
      failures = 0
      if (step._tag === "Invalidated" || step._tag === "Completed") return step
      yield* tell(step.trouble)
      if (step._tag === "Idle") yield* hints.wait(config.poll_interval_ms)
    }
  })
  const { audit } = follower
  return yield* audit === null ? follow : Effect.raceFirst(follow, Effect.andThen(audit.compare, Effect.never))
})
