import { Context, Effect, Layer } from "effect"
import type { StorageError } from "../storage/error.ts"
import { type DeadLetterFilter, type DeadLetterRow, Storage } from "../storage/storage.ts"
import { InvalidPosition } from "./error.ts"

/** Why a dead letter is not sent again, as the error code of a replay. */
export type NoReplay = "RETRACTED" | "NO_REPLAY_RETRACTED" | "NO_REPLAY_PAYLOAD"

export interface DeadLetter extends DeadLetterRow {
  /** Opaque and stable. */
  readonly id: string
  readonly replayable: boolean
  /** The error code that a replay would answer. */
  readonly whyNot: NoReplay | null
}

export interface DeadLetterPage {
  readonly items: ReadonlyArray<{ readonly cursor: string; readonly node: DeadLetter }>
  readonly hasNextPage: boolean
  /** The cursor of the last item, or null on an empty page. */
  readonly endCursor: string | null
  /** How many there are on all pages. */
  readonly totalCount: number
}

export interface DeadLettersRequest extends DeadLetterFilter {
  /** At least 1; more than 1000 are read as 1000. */
  readonly first: number
  /** The cursor of an item, or null for the oldest. */
  readonly after: string | null
}

/** Deliveries that used up their retries, kept in the order of dying. */
export class DeadLetters extends Context.Service<
  DeadLetters,
  {
    readonly list: (request: DeadLettersRequest) => Effect.Effect<DeadLetterPage, InvalidPosition | StorageError>
  }
>()("blockwatcher/DeadLetters") {
  static readonly layer: Layer.Layer<DeadLetters, never, Storage> = Layer.effect(
    DeadLetters,
    Effect.gen(function* () {
      const store = yield* Storage
      const list = Effect.fn("DeadLetters.list")(function* (request: DeadLettersRequest) {
        const { first, after, ...filter } = request
        const died = after === null ? 0 : parseToken("died", after)
        if (died === null)
          return yield* new InvalidPosition({
            reason:
              "this is no cursor of the dead letters: pass the cursor of an item, or null to begin with the oldest",
          })
        const limit = Math.max(1, Math.min(first, MAX_PAGE))
        const rows = yield* store.deadLetters(filter, { after: died, limit: limit + 1 })
        const totalCount = yield* store.deadLetterCount(filter)
        const items = rows
          .slice(0, limit)
          .map((row) => ({ cursor: makeToken("died", row.died), node: deadLetter(row) }))
        return { items, hasNextPage: rows.length > limit, endCursor: items.at(-1)?.cursor ?? null, totalCount }
      })
      return { list }
    }),
  )
}

const MAX_PAGE = 1000

const deadLetter = (row: DeadLetterRow): DeadLetter => {
  const whyNot = noReplay(row)
  return { ...row, id: makeToken("seq", row.seq), replayable: whyNot === null, whyNot }
}

/** Why a replay of this row would be refused, or null. */
export const noReplay = (row: Pick<DeadLetterRow, "kind" | "ended" | "payload">): NoReplay | null => {
  if (row.kind === "retracted") return "NO_REPLAY_RETRACTED"
  if (row.ended) return "RETRACTED"
  return row.payload === null ? "NO_REPLAY_PAYLOAD" : null
}

/** The key of the delivery row that a dead letter's id stands for, or null if it is no such id. */
export const deadLetterSeq = (id: string): number | null => parseToken("seq", id)

const makeToken = (field: "seq" | "died", value: number): string =>
  Buffer.from(`${field}:${value}`).toString("base64url")

const parseToken = (field: "seq" | "died", token: string): number | null => {
  const value = Number(
    Buffer.from(token, "base64url")
      .toString()
      .slice(field.length + 1),
  )
  return Number.isSafeInteger(value) && value >= 0 && makeToken(field, value) === token ? value : null
}
