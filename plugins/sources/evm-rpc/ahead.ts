import { type Cause, Clock, Effect, Exit, Latch, type Scope, type Tracer } from "effect"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { Chain } from "./chain.ts"
import { type Range, type RangeContents, readRangeAhead } from "./range-reads.ts"
import { inReadSpan } from "./read-span.ts"
import type { BlockNeed, Routing } from "./routing.ts"
import { type Allowance, unbounded } from "./rpc/allowance.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"
import { afterAnswer, afterRefusal, greatestLimit, hasRoom, initialShare, type Share } from "./rpc/share.ts"

/** A range with what the interests of `routing` need of it. */
export interface ReadRange {
  readonly routing: Routing
  readonly contents: RangeContents
  /** In which it was read, if anybody reads spans. */
  readonly span: Tracer.Span | null
}

/** Ranges that are asked for at the same time: so many at first, and as long as nobody waits for them; and at most. */
const FEWEST = 3
const MOST = 32

/** Who waits so long for the next range, in ms, can use more of them at once. */
const WAIT_MS = 5

const MIB = 2 ** 20

/**
 * Bytes of answers that wait for their turn or are under way, if these are more ranges than the fewest. Megabytes of logs
 * keep whoever reads them busy for longer than a node needs, and what waits costs the garbage collector; of full blocks most
 * is dropped as they come.
 */
const BUDGET = { nothing: 16 * MIB, headers: 16 * MIB, transactions: 128 * MIB } as const

/** Bytes that a range may bring: at least, at most, and while nothing is known about the blocks. Beyond, it waits for its turn. */
const EACH = { least: MIB, most: 32 * MIB, unknown: 8 * MIB } as const

/** An answer of more bytes waits unparsed. */
const LONG = 64 * 1024

/** Times that a range is asked for ahead; then it waits for its turn. */
const TRIES = 2

/** Blocks that are read at once where more than their logs is needed. */
const BLOCKS_AT_ONCE = { nothing: Number.POSITIVE_INFINITY, headers: 100, transactions: 32 } as const

/** A range on its way. */
interface Piece extends Range {
  readonly routing: Routing
  state: "waits" | "asked" | "answered"
  by: Provider | null
  tries: number
  /** Bytes that are held for it. */
  bytes: number
  answer: Exit.Exit<Effect.Effect<RangeContents, RpcFailure>, RpcFailure> | null
  span: Tracer.Span | null
}

/**
 * Reads ranges in order, several at the same time: as many as whoever takes them can use, as the providers can serve and as
 * fit in memory. The answers come from all providers that are well, each asked for as many blocks as it serves at once.
 */
export class RangesAhead {
  readonly #chain: Chain
  readonly #providers: Providers
  readonly #scope: Scope.Scope
  readonly #greatest: number
  readonly #shares = new Map<Provider, Share>()
  readonly #pieces: Array<Piece> = []
  readonly #settled = Latch.makeUnsafe(false)
  #window = FEWEST
  /** The next block to ask for, and the last one. */
  #from = 0
  #to = -1
  #held = 0
  #need: BlockNeed = "nothing"
  #bytesPerBlock: number | null = null
  /** Whether answers lack timestamps, which are then fetched before the range is needed. */
  #untimed = false
  #hasMet = false
  #broken: Cause.Cause<never> | null = null

  /**
   * @param scope in which requests run
   * @param perSecond requests that a provider may be sent in a second, if that is limited
   */
  constructor(chain: Chain, providers: Providers, scope: Scope.Scope, perSecond: number | undefined) {
    this.#chain = chain
    this.#providers = providers
    this.#scope = scope
    this.#greatest = greatestLimit(perSecond)
  }

  /**
   * Reads the range that begins at `from`, and asks for those behind it up to `to`. After a failure the same range is read
   * anew, with what was asked for behind it kept, unless it was asked for before a factory was followed that is by now:
   * the answers may lack what it makes.
   *
   * @param routing is read for each range
   */
  readonly next = Effect.fnUntraced(function* (
    this: RangesAhead,
    { from, to }: Range,
    routing: Effect.Effect<Routing>,
  ): Effect.fn.Return<ReadRange, RpcFailure | SourceRefused> {
    if (!this.#hasMet) yield* this.#meet
    this.#align(from, to, yield* routing)
    yield* this.#fill(routing)
    const piece = this.#pieces[0] ?? this.#add(from, yield* this.#providers.preferred, yield* routing)
    const begun = yield* Clock.currentTimeMillis
    while (piece.state === "asked") {
      if (this.#broken !== null) return yield* Effect.failCause(this.#broken)
      this.#settled.closeUnsafe()
      yield* this.#settled.await
    }
    const waited = (yield* Clock.currentTimeMillis) - begun
    // Whoever was given the range before has a turn before the next one is parsed.
    yield* Effect.yieldNow
    const contents = yield* this.#contents(piece)
    this.#pieces.shift()
    this.#held -= piece.bytes
    if (contents.timestamps.size > 0) this.#untimed = true
    this.#adapt(piece, contents.by, waited)
    return { routing: piece.routing, contents, span: piece.span }
  })

  /** Asks those that nobody needed yet for their chain, without which nothing is asked of them. */
  get #meet(): Effect.Effect<void> {
    this.#hasMet = true
    const strangers = this.#providers.list.filter(({ chainId }) => chainId === null)
    return Effect.forEach(
      strangers,
      (provider) => Effect.forkIn(Effect.ignore(this.#providers.on(provider, () => Effect.void)), this.#scope),
      { discard: true },
    )
  }

  /** Drops what does not lie behind `from`, or lies behind `to`, or does not follow all factories. */
  #align(from: number, to: number, { logs }: Routing): void {
    this.#to = to
    const isOther = (piece: Piece) => piece.to > to || !piece.routing.logs.follows(logs)
    const kept = this.#pieces[0]?.from === from ? this.#pieces.findIndex(isOther) : 0
    if (kept !== -1) this.#pieces.length = kept
    this.#from = this.#pieces.length === 0 ? from : this.#pieces.at(-1)!.to + 1
    this.#held = this.#pieces.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  readonly #fill = Effect.fnUntraced(function* (
    this: RangesAhead,
    routing: Effect.Effect<Routing>,
  ): Effect.fn.Return<void> {
    const current = yield* routing
    const now = yield* Clock.currentTimeMillis
    for (const piece of this.#launch(current, now))
      yield* Effect.forkIn(Effect.onExit(this.#ask(piece, routing), this.#notice), this.#scope)
  })

  /** What breaks in a request's own fiber breaks whoever waits: nobody else would answer. */
  readonly #notice = (exit: Exit.Exit<void>): Effect.Effect<void> =>
    Effect.sync(() => {
      if (Exit.isSuccess(exit) || Exit.hasInterrupts(exit)) return
      this.#broken = exit.cause
      this.#settled.openUnsafe()
    })

  /** Chooses what is asked for now, and from whom. */
  #launch(routing: Routing, now: number): ReadonlyArray<Piece> {
    const launched: Array<Piece> = []
    const assign = (piece: Piece, by: Provider) => {
      piece.by = by
      piece.state = "asked"
      piece.tries++
      const share = this.#share(by)
      this.#shares.set(by, { ...share, underWay: share.underWay + 1 })
      launched.push(piece)
    }
    for (const piece of this.#pieces) {
      if (piece.state !== "waits" || piece.tries === TRIES) continue
      const by = this.#choose(piece.from, now, piece.by)
      if (by !== null) assign(piece, by)
    }
    while (this.#from <= this.#to && this.#pieces.length < this.#window) {
      const by = this.#choose(this.#from, now, null)
      if (by === null || !this.#hasRoom(by, routing)) break
      assign(this.#add(this.#from, by, routing), by)
    }
    return launched
  }

  /** Whether the next range fits in memory beside the others. */
  #hasRoom(by: Provider, routing: Routing): boolean {
    const bytes = this.#allowance(this.#size(by, routing), routing)
    return this.#pieces.length < FEWEST || this.#held + bytes <= BUDGET[routing.need]
  }

  #size({ range }: Provider, { need }: Routing): number {
    return Math.min(range.blocks, BLOCKS_AT_ONCE[need])
  }

  /** The bytes that so many blocks may bring: twice what those before them did. */
  #allowance(blocks: number, { need }: Routing): number {
    if (need !== this.#need) {
      this.#need = need
      this.#bytesPerBlock = null
    }
    return this.#bytesPerBlock === null
      ? EACH.unknown
      : Math.min(EACH.most, Math.max(EACH.least, 2 * Math.ceil(this.#bytesPerBlock * blocks)))
  }

  #add(from: number, by: Provider, routing: Routing): Piece {
    const blocks = Math.min(this.#size(by, routing), this.#to - from + 1)
    const bytes = this.#allowance(blocks, routing)
    const piece: Piece = {
      from,
      to: from + blocks - 1,
      routing,
      state: "waits",
      by: null,
      tries: 0,
      bytes,
      answer: null,
      span: null,
    }
    this.#pieces.push(piece)
    this.#held += bytes
    this.#from = piece.to + 1
    return piece
  }

  #share(provider: Provider): Share {
    let share = this.#shares.get(provider)
    if (share === undefined) this.#shares.set(provider, (share = initialShare(this.#greatest)))
    return share
  }

  /** The provider that has the most room, the preferred one of several; null if none has any. */
  #choose(from: number, now: number, avoid: Provider | null): Provider | null {
    const ready = this.#providers.ready({ from })
    const free = ready.filter((provider) => hasRoom(this.#share(provider), now))
    const others = free.filter((provider) => provider !== avoid)
    const load = (provider: Provider) => this.#share(provider).underWay / this.#share(provider).limit
    return (others.length === 0 ? free : others).reduce<Provider | null>(
      (best, provider) => (best === null || load(provider) < load(best) ? provider : best),
      null,
    )
  }

  readonly #ask = Effect.fnUntraced(function* (
    this: RangesAhead,
    piece: Piece,
    routing: Effect.Effect<Routing>,
  ): Effect.fn.Return<void> {
    const by = piece.by!
    const allowance: Allowance = { bytes: piece.bytes, received: 0, requests: 0 }
    const isLong = () => allowance.received > LONG && !this.#untimed
    const answer = yield* Effect.exit(
      inReadSpan(piece, allowance, (span) => {
        piece.span = span
        return this.#providers.on(by, () => readRangeAhead(by, piece, piece.routing, isLong))
      }),
    )
    const now = yield* Clock.currentTimeMillis
    this.#settle(piece, answer, allowance.received, now)
    this.#settled.openUnsafe()
    yield* this.#fill(routing)
  })

  #settle(piece: Piece, answer: NonNullable<Piece["answer"]>, received: number, now: number): void {
    const by = piece.by!
    const share = { ...this.#share(by), underWay: this.#share(by).underWay - 1 }
    piece.answer = answer
    if (this.#pieces.includes(piece)) this.#held += received - piece.bytes
    piece.bytes = received
    const failure = failureOf(answer)
    if (failure === null) {
      piece.state = "answered"
      this.#shares.set(by, afterAnswer(share, this.#greatest))
      this.#learn(received, piece)
      return
    }
    this.#shares.set(by, afterRefusal(share, failure.kind, now, failure.retryAfterMs))
    piece.state = "waits"
    if (failure.kind === "allowance") piece.tries = TRIES
  }

  #learn(received: number, { from, to, routing: { need } }: Piece): void {
    if (need !== this.#need) return
    const seen = received / (to - from + 1)
    this.#bytesPerBlock = this.#bytesPerBlock === null ? seen : Math.max(seen, (this.#bytesPerBlock + seen) / 2)
  }

  /** What a range holds whose turn it is: as it came, or asked for now. */
  readonly #contents = Effect.fnUntraced(function* (
    this: RangesAhead,
    piece: Piece,
  ): Effect.fn.Return<RangeContents, RpcFailure | SourceRefused> {
    const { answer, by } = piece
    piece.answer = null
    if (answer !== null && Exit.isFailure(answer)) {
      const failure = failureOf(answer)
      // A defect is not hidden by another try.
      if (failure === null) return yield* Effect.failCause(answer.cause)
      const others = this.#providers.ready({ from: piece.from }).some((provider) => provider !== by)
      if (!others && (failure.kind === "quota" || failure.kind === "overload")) return yield* failure
    }
    if (answer !== null && Exit.isSuccess(answer)) {
      const read = yield* Effect.exit(this.#providers.on(by!, () => answer.value))
      if (Exit.isSuccess(read)) return read.value
      if (failureOf(read) === null) return yield* Effect.failCause(read.cause)
    }
    const allowance = unbounded()
    piece.state = "answered"
    const contents = yield* inReadSpan(piece, allowance, (span) => {
      piece.span = span
      return this.#chain.range(piece, piece.routing, by)
    }).pipe(
      Effect.tapError(() =>
        Effect.sync(() => {
          piece.state = "waits"
          piece.tries = 0
        }),
      ),
    )
    this.#learn(allowance.received, piece)
    return contents
  })

  /** Asks for more at once while it is waited for what cannot come in longer ranges, and for less while all is there. */
  #adapt(piece: Piece, by: Provider, waitedMs: number): void {
    const isWhole = piece.to - piece.from + 1 >= this.#size(by, piece.routing)
    if (waitedMs >= WAIT_MS && isWhole) this.#window = Math.min(MOST, this.#window * 2)
    else if (this.#pieces.every(({ state }) => state === "answered")) this.#window = Math.max(FEWEST, this.#window - 1)
  }
}

/** Why a request failed; null if it did not, or for a defect. */
const failureOf = (exit: Exit.Exit<unknown, RpcFailure>): RpcFailure | null => {
  const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : null
  return error !== null && error._tag === "Some" ? error.value : null
}
