import { Effect, Latch, Schema, Stream } from "effect"
import { type Cursor, endOf, isAfter, startOf } from "../../core/model/cursor.ts"
import {
  type Anchor,
  type InterestSet,
  type SourceBatch,
  type SourceEvent,
  type SourceOutcome,
  SourcePlugin,
  SourceRefused,
  type SourceRun,
} from "../../core/plugin/index.ts"

/** One event of a scripted block: what a test wants to see matched. */
export interface ScriptedEvent {
  readonly name: string
  readonly value: bigint
  /** In ms since 1970, or null for an event without one; a second a block unless set. */
  readonly time?: number | null
  /** The event does not decode. */
  readonly broken?: boolean
}

interface Selector {
  readonly name: string
}

/** A feed that a test writes block by block; block numbers begin at 1. */
export class ScriptedFeed {
  blocks: Array<ReadonlyArray<ScriptedEvent>> = []
  /** The branch on which each block lies: part of its hash. */
  #branches: Array<string> = []
  #forks = 0
  readonly #grown = Latch.makeUnsafe(false)
  #ending: SourceOutcome | null = null
  /** Set to make the source refuse to start with this reason. */
  refusal: string | null = null
  /** How many batches were handed to the pipeline. */
  emitted = 0

  append(...blocks: ReadonlyArray<ReadonlyArray<ScriptedEvent>>): void {
    this.#add("", blocks)
  }

  /** Replaces every block behind `primary` by those of another branch; a source that emitted them finds out. */
  fork(primary: number, branch: string, ...blocks: ReadonlyArray<ReadonlyArray<ScriptedEvent>>): void {
    this.blocks = this.blocks.slice(0, primary)
    this.#branches = this.#branches.slice(0, primary)
    this.#forks++
    this.#add(branch, blocks)
  }

  #add(branch: string, blocks: ReadonlyArray<ReadonlyArray<ScriptedEvent>>): void {
    this.blocks.push(...blocks)
    this.#branches.push(...blocks.map(() => branch))
    this.#grown.openUnsafe()
  }

  end(outcome: SourceOutcome): void {
    this.#ending = outcome
    this.#grown.openUnsafe()
  }

  anchor(primary: number): Anchor {
    const branch = Buffer.from(this.#branches[primary - 1] ?? "").toString("hex")
    return { primary, hash: `0x${branch}${primary.toString(16).padStart(64 - branch.length, "0")}` }
  }

  /** The cursor behind which the anchors that a run knows are no longer those of the feed; null while they are. */
  #forkPoint(known: ReadonlyArray<Anchor>): Cursor | null {
    if (known.every(({ primary, hash }) => this.anchor(primary).hash === hash)) return null
    const common = known.filter(({ primary, hash }) => this.anchor(primary).hash === hash)
    return endOf(Math.max(0, ...common.map(({ primary }) => primary)))
  }

  #events(block: number, interests: InterestSet<Selector>): Array<SourceEvent> {
    return (this.blocks[block - 1] ?? []).flatMap((event, i) => {
      const concerned = interests.interests.filter(({ selector }) => selector.name === event.name).map(({ id }) => id)
      if (concerned.length === 0) return []
      return [
        {
          cursor: { primary: block, secondary: 1_048_576 + i },
          index: 0,
          interests: concerned,
          time: event.time === undefined ? block * 1000 : event.time,
          fields: () => {
            if (event.broken === true) throw new Error("a broken event")
            return {
              name: event.name,
              args: { value: event.value },
              block: { number: block, hash: this.anchor(block).hash },
            }
          },
        },
      ]
    })
  }

  batch(from: number, to: number, interests: InterestSet<Selector>, behind: Cursor | null): SourceBatch {
    const events: Array<SourceEvent> = []
    for (let block = from; block <= to; block++) {
      for (const event of this.#events(block, interests)) {
        if (behind === null || isAfter(event.cursor, behind)) events.push(event)
      }
    }
    return {
      events,
      upTo: endOf(to),
      resume: blocksOf(from, to).map((block) => this.anchor(block)),
      interests: interests.version,
    }
  }

  readonly run = (range: number) => {
    return (run: SourceRun<Selector>) =>
      Effect.gen({ self: this }, function* () {
        if (this.refusal !== null) return yield* new SourceRefused({ reason: this.refusal })
        let behind = run.resume.cursor
        const known = [...run.resume.anchors]
        let checkedAt = -1
        while (true) {
          const from = checkedAt === this.#forks ? null : this.#forkPoint(known)
          if (from !== null) return { _tag: "Invalidated", from, cause: "another branch" } as const
          checkedAt = this.#forks
          yield* run.head(endOf(this.blocks.length))
          const next = isAfter(endOf(behind.primary), behind) ? Math.max(behind.primary, 1) : behind.primary + 1
          if (next > this.blocks.length) {
            if (this.#ending !== null) return this.#ending
            this.#grown.closeUnsafe()
            yield* this.#grown.await
            continue
          }
          const to = Math.min(next + range - 1, this.blocks.length)
          const batch = this.batch(next, to, yield* run.interests, behind)
          behind = batch.upTo
          known.push(...batch.resume)
          yield* run.emit(batch)
          this.emitted++
        }
      })
  }
}

const blocksOf = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** A source plugin over a scripted feed. `start`: the first block; `range`: blocks in one batch. */
export const scriptedSource = (feed: ScriptedFeed, name = "scripted") =>
  SourcePlugin.make({
    name,
    config: Schema.Struct({
      start: Schema.optionalKey(Schema.Int),
      range: Schema.optionalKey(Schema.Int),
      key: Schema.optionalKey(Schema.String),
    }),
    sensitive: ["key"],
    fixed: ["start"],
    selector: Schema.Struct({ name: Schema.NonEmptyString }),
    describe: () => ({
      fields: {
        kind: "record",
        fields: {
          name: { kind: "string" },
          args: { kind: "record", positional: true, fields: { value: { kind: "int" } } },
          block: { kind: "record", fields: { number: { kind: "number" }, hash: { kind: "bytes" } } },
        },
      },
      identity: ["block.number", "block.hash", "name", "args"],
    }),
    make: (config) =>
      Effect.succeed({
        start: Effect.suspend(() =>
          feed.refusal === null
            ? Effect.succeed(startOf(config.start ?? 1))
            : Effect.fail(new SourceRefused({ reason: feed.refusal })),
        ),
        run: feed.run(config.range ?? 10),
        scan: ({ from, to, interests }) => Stream.succeed(feed.batch(from, to, interests, null)),
      }),
  })

/** Waits on a condition that other fibers bring about, looking again each few ms. */
export const waitUntil = (
  what: string,
  condition: Effect.Effect<boolean> | (() => boolean),
  timeout = "20 seconds" as const,
): Effect.Effect<void> => {
  const check = typeof condition === "function" ? Effect.sync(condition) : condition
  return check.pipe(
    Effect.flatMap((holds) => (holds ? Effect.void : Effect.andThen(Effect.sleep("5 millis"), Effect.fail("not yet")))),
    Effect.eventually,
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.die(new Error(`never came true: ${what}`)) }),
  )
}
