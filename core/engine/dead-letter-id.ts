import type { DeadLetterRow } from "../storage/dead-letter.ts"

const encode = (text: string): string => Buffer.from(text).toString("base64url")

/** The number at the end of a token that begins so; null if nothing here made the token. */
const numberIn = (token: string, prefix: string): number | null => {
  const value = Number(Buffer.from(token, "base64url").toString().slice(prefix.length))
  return Number.isSafeInteger(value) && value >= 0 && encode(`${prefix}${value}`) === token ? value : null
}

const prefixOf = (network: string): string => `letter:${network}:`

/** The id of a dead letter: its network and the key of its delivery row. */
export const deadLetterId = ({ network, seq }: Pick<DeadLetterRow, "network" | "seq">): string =>
  encode(`${prefixOf(network)}${seq}`)

/** What an id stands for; null if it is none. */
export const parseDeadLetterId = (id: string): { readonly network: string; readonly seq: number } | null => {
  const [, network] = Buffer.from(id, "base64url").toString().split(":")
  if (network === undefined) return null
  const seq = numberIn(id, prefixOf(network))
  return seq === null ? null : { network, seq }
}

/** The cursor behind a letter, by its place in the order of dying. */
export const deadLetterCursor = (died: number): string => encode(`died:${died}`)

/** The place that a cursor stands for; null if it is none. */
export const parseDeadLetterCursor = (cursor: string): number | null => numberIn(cursor, "died:")
