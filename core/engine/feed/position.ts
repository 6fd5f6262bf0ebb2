import type { FeedState } from "../../storage/feed-item.ts"
import { InvalidPosition, StalePosition } from "../error.ts"

/** The position of the last item of each network that was read. A network that it does not name is read from its oldest. */
export type Positions = ReadonlyMap<string, number>

/** What a token holds. */
export interface Token {
  readonly positions: Positions
  /** In the cursors of a page: where the paging ends. */
  readonly bound: Positions | null
}

const VERSION = 1

/** The token that stands for the oldest item that is kept. */
export const OLDEST = "0"

/** Makes a token that is accepted where the `network` argument is the same (undefined: all networks). */
export const encodePosition = (network: string | undefined, positions: Positions, bound?: Positions): string => {
  const parts: Array<unknown> = [VERSION, network ?? null, Object.fromEntries(positions)]
  if (bound !== undefined) parts.push(Object.fromEntries(bound))
  return Buffer.from(JSON.stringify(parts)).toString("base64url")
}

/** Reads a token for a request with this `network` argument, or says why it cannot be used. */
export const decodePosition = (text: string, network: string | undefined): Token | InvalidPosition => {
  if (text === OLDEST) return { positions: new Map(), bound: null }
  const parts = parseParts(text)
  if (parts !== null && parts[0] !== VERSION)
    return new InvalidPosition({
      reason:
        'this position was made by another version of the feed: start again from null (now) or "0" (the oldest kept)',
    })
  const token = parts === null ? null : parseToken(parts)
  if (token === null)
    return new InvalidPosition({
      reason: 'this is no position of the feed: pass the position of an item, or "0" for the oldest kept',
    })
  if (token.network !== (network ?? null))
    return new InvalidPosition({
      reason:
        `this position was made for ${scopeName(token.network)}, but the request names ${scopeName(network ?? null)}: ` +
        "use it with the network argument that it came from",
    })
  return { positions: token.positions, bound: token.bound }
}

const scopeName = (network: string | null): string => (network === null ? "all networks" : `network '${network}'`)

/** The parts of a token of any version, or null. */
const parseParts = (text: string): ReadonlyArray<unknown> | null => {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"))
    return Array.isArray(parts) && Number.isSafeInteger(parts[0]) ? parts : null
  } catch {
    return null
  }
}

const parseToken = (parts: ReadonlyArray<unknown>): (Token & { readonly network: string | null }) | null => {
  const [, network, named, bounded] = parts
  const positions = parsePositions(named)
  const bound = bounded === undefined ? null : parsePositions(bounded)
  if (positions === null || (bounded !== undefined && bound === null) || parts.length > 4) return null
  return network === null || typeof network === "string" ? { network, positions, bound } : null
}

const parsePositions = (json: unknown): Positions | null => {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return null
  const entries = Object.entries(json)
  return entries.every((entry): entry is [string, number] => Number.isSafeInteger(entry[1]) && entry[1] >= 0)
    ? new Map(entries)
    : null
}

/** The newest position of each network. */
export const newestOf = (states: ReadonlyArray<FeedState>): Map<string, number> =>
  new Map(states.map((state) => [state.network, state.position]))

/** Refuses positions that are ahead of what the feed has given out: they come from another database. */
export const aheadOf = (positions: Positions, states: ReadonlyArray<FeedState>): InvalidPosition | null => {
  const state = states.find(({ network, position }) => (positions.get(network) ?? 0) > position)
  return state === undefined
    ? null
    : new InvalidPosition({
        reason:
          `this position is ahead of all that the feed of network '${state.network}' holds, so it comes from another ` +
          'database: start again from null (now) or "0" (the oldest kept)',
      })
}

/** What a request shows, in the words of storage. */
export interface ItemFilter {
  readonly network?: string
  readonly monitor?: string
  readonly kinds: ReadonlyArray<"match" | "retracted">
}

/**
 * Whether an item that the filter would show was trimmed behind one of the positions. The token in the error keeps the
 * positions that are still good, and reads the other networks from their oldest.
 */
export const staleness = (
  positions: Positions,
  filter: ItemFilter,
  states: ReadonlyArray<FeedState>,
): StalePosition | null => {
  const stale = states.filter(({ network, trims }) => {
    const position = positions.get(network)
    return position !== undefined && trims.some((trim) => trim.position > position && wouldShow(filter, network, trim))
  })
  if (stale.length === 0) return null
  const kept = new Map(positions)
  for (const { network } of stale) kept.delete(network)
  return new StalePosition({ oldest: encodePosition(filter.network, kept) })
}

/** Whether the filter shows items of this network, monitor and kind. */
export const wouldShow = (
  filter: ItemFilter,
  network: string,
  item: { readonly monitor: string; readonly kind: "match" | "retracted" },
): boolean =>
  (filter.network === undefined || filter.network === network) &&
  (filter.monitor === undefined || filter.monitor === item.monitor) &&
  filter.kinds.includes(item.kind)
