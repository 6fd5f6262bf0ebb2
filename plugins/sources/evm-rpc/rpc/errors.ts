import { Schema } from "effect"

/**
 * Why a call brought no result.
 *
 * | kind          | meaning                                                                         |
 * | ------------- | ------------------------------------------------------------------------------- |
 * | `unreachable` | no complete answer came                                                         |
 * | `malformed`   | what came is no JSON-RPC answer, or not of the promised shape                   |
 * | `range`       | the provider never serves so many blocks at once                                |
 * | `too-many`    | these blocks hold too much for one answer                                       |
 * | `allowance`   | the answer is larger than what may be held of it before it is needed            |
 * | `quota`       | too many requests for now; says nothing about the range                         |
 * | `overload`    | the provider cannot serve now                                                   |
 * | `missing`     | the provider does not have these blocks                                         |
 * | `unsupported` | the provider does not have the method                                           |
 * | `refused`     | any other error that the provider answered                                      |
 * | `wrong-chain` | the provider serves another chain                                               |
 */
export const FailureKind = Schema.Literals([
  "unreachable",
  "malformed",
  "range",
  "too-many",
  "allowance",
  "quota",
  "overload",
  "missing",
  "unsupported",
  "refused",
  "wrong-chain",
])
export type FailureKind = typeof FailureKind.Type

/** What a provider said about the ranges that it serves. */
export interface RangeHint {
  /** The greatest count of blocks. */
  readonly blocks?: number
  /** A range, both ends included, that it says would work. */
  readonly from?: number
  readonly to?: number
}

/** A call failed. `reason` names the provider and holds nothing secret. */
export class RpcFailure extends Schema.TaggedError<RpcFailure>()("RpcFailure", {
  kind: FailureKind,
  reason: Schema.String,
  hint: Schema.optionalKey(
    Schema.Struct({
      blocks: Schema.optionalKey(Schema.Number),
      from: Schema.optionalKey(Schema.Number),
      to: Schema.optionalKey(Schema.Number),
    }),
  ),
  /** The lowest block that the provider says it has. */
  lowest: Schema.optionalKey(Schema.Number),
  retryAfterMs: Schema.optionalKey(Schema.Number),
}) {
  override get message() {
    return this.reason
  }
}

/** An error as a provider answered it. `code` is null when only HTTP said no. */
export interface ProviderError {
  readonly status: number
  readonly code: number | null
  readonly message: string
}

/** What an error means. */
export interface Classified {
  readonly kind: FailureKind
  readonly hint?: RangeHint
  readonly lowest?: number
}

const NUMBER = String.raw`(\d[\d,_]*)`

/** The provider's greatest range stands in the group, if there is one. */
const STRUCTURAL: ReadonlyArray<RegExp> = [
  new RegExp(String.raw`requested too many blocks.*maximum is set to ${NUMBER}`, "is"),
  new RegExp(String.raw`max(?:imum)? (?:block )?range(?: is| of)?:? ${NUMBER}`, "i"),
  new RegExp(String.raw`maximum (?:allowed )?number of (?:requested )?blocks(?: is|:)? ${NUMBER}`, "i"),
  new RegExp(String.raw`block range (?:is )?too (?:wide|large)(?:.*?maximum(?: allowed)?(?: is)? ${NUMBER})?`, "is"),
  new RegExp(String.raw`limited to (?:an? |0 ?- ?|at most )?${NUMBER}[- ]blocks?`, "i"),
  new RegExp(String.raw`limited to (?:an? )?${NUMBER}[- ](?:block )?range`, "i"),
  new RegExp(String.raw`exceeds the range allowed for your plan(?: \(\d[\d,]* ?> ?${NUMBER}\))?`, "i"),
  new RegExp(String.raw`limit the query to (?:at most )?${NUMBER} blocks`, "i"),
  new RegExp(String.raw`ranges? over ${NUMBER} blocks`, "i"),
  new RegExp(String.raw`range \d[\d,]* exceeds (?:the )?(?:limit|maximum)(?: of)? ${NUMBER}`, "i"),
  new RegExp(String.raw`(?:up to|at most|maximum of|max) (?:an? )?${NUMBER}[- ]blocks?(?: range)?`, "i"),
  new RegExp(String.raw`block range (?:limit )?(?:exceeded|exceeds)(?:.*?(?:limit|max\w*)[^\d]*${NUMBER})?`, "is"),
  /exceed(?:s|ed)? (?:the )?(?:max(?:imum)? )?block range/i,
]

const HINTS: ReadonlyArray<RegExp> = [
  /block range(?: should work)?:?\s*\[\s*(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)\s*\]/i,
  /range\s+(0x[0-9a-f]+|\d+)\s*-\s*(0x[0-9a-f]+|\d+)/i,
]

const TOO_MANY =
  /query returned more than|logs matched by query exceeds|exceeds? max(?:imum)? results|response size|response is too (?:big|large)|query timeout exceeded|reduce (?:your|the) block range|too many (?:results|logs)|result set (?:is )?too large/i

const MISSING =
  /unknown block|header not found|block not found|missing trie node|height is not available|(?:history|state|block|data) (?:has been |is )?pruned|pruned (?:history|data|block)|(?:beyond|ahead of|after|greater than) (?:the )?(?:current )?(?:head|last(?: accepted)? block|latest block)|block is out of range/i

const BASE_HEIGHT = new RegExp(String.raw`base height:? ${NUMBER}`, "i")

const QUOTA =
  /rate.?limit|rate exceeded|too many requests|quota|capacity|daily request|request limit|requests? per|compute units|credits|throttl|usage limit|call rate|exceeded .*(?:per second|per day|per month)/i

const OVERLOAD =
  /no backend is currently healthy|overload|temporar|unavailable|server (?:is )?busy|time.?d? ?out|try again|internal (?:server )?error/i

const UNSUPPORTED =
  /method .*(?:not (?:found|supported|available|allowed|exist)|does not exist|unsupported)|unsupported method/i

/** Words that tell a limit on logs from a quota where the code is the same for both. */
const ABOUT_LOGS = /\b(?:logs?|results?|blocks?|range|size)\b/i

const toNumber = (text: string): number => Number(text.replaceAll(/[,_]/g, ""))

const structural = (message: string): Classified | null => {
  for (const pattern of STRUCTURAL) {
    const found = pattern.exec(message)
    if (found === null) continue
    const blocks = found[1] === undefined ? Number.NaN : toNumber(found[1])
    return blocks >= 1 ? { kind: "range", hint: { blocks } } : { kind: "range" }
  }
  return null
}

const suggested = (message: string): RangeHint | null => {
  for (const pattern of HINTS) {
    const found = pattern.exec(message)
    if (found === null) continue
    const [from, to] = [Number(found[1]), Number(found[2])]
    if (Number.isSafeInteger(from) && Number.isSafeInteger(to) && from <= to) return { from, to }
  }
  return null
}

const byCode = ({ status, code, message }: ProviderError): FailureKind => {
  if (status === 429) return "quota"
  if (code === -32601 || UNSUPPORTED.test(message)) return "unsupported"
  if (code === -32700) return "malformed"
  if (QUOTA.test(message)) return "quota"
  if (code === -32005) return ABOUT_LOGS.test(message) ? "too-many" : "quota"
  if (status === 413) return "too-many"
  if (status >= 500 || OVERLOAD.test(message)) return "overload"
  return "refused"
}

/** Tells what a provider's error means: by its words first, as codes mean different things at different providers. */
export const classify = (error: ProviderError): Classified => {
  const { message } = error
  const hint = suggested(message)
  if (hint !== null) return { kind: "too-many", hint }
  const limit = structural(message)
  if (limit !== null) return limit
  if (TOO_MANY.test(message)) return { kind: "too-many" }
  if (MISSING.test(message)) {
    const base = BASE_HEIGHT.exec(message)?.[1]
    return base === undefined ? { kind: "missing" } : { kind: "missing", lowest: toNumber(base) }
  }
  return { kind: byCode(error) }
}
