import { randomUUID } from "node:crypto"

/** Bytes of a long list that are parsed at once: below what the engine counts as a large object. */
const PIECE = 32 * 1024

/** How the answer of `eth_getLogs` begins where there are logs. */
const LIST = Buffer.from('"result":[{')

/** Stands for the list that was cut out of the answers; no node can know it. */
const PLACEHOLDER = randomUUID()

/**
 * Parses the body of an answer, or of the answers to a batch, as `JSON.parse` does; undefined if it is no JSON. A long
 * list of objects is parsed in pieces: a text of megabytes is garbage that the collector notices at once.
 */
export const parseBody = (body: Buffer): unknown =>
  (body.length > 2 * PIECE ? parseInPieces(body) : undefined) ?? parseText(body.toString("utf8"))

const parseText = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Cuts where a list of objects seems to end, and between its objects. All cuts were right if every piece between two is a
 * list by itself and the list is found as a result in what is left; if not, the answer is undefined.
 */
const parseInPieces = (body: Buffer): unknown => {
  const found = body.indexOf(LIST)
  if (found === -1) return undefined
  const start = found + LIST.length - 2
  const end = body.indexOf("}]", start) + 2
  if (end < start) return undefined
  const list = parseList(body, start + 1, end - 1)
  if (list === undefined) return undefined
  const rest = parseText(`${body.toString("utf8", 0, start)}"${PLACEHOLDER}"${body.toString("utf8", end)}`)
  const answers: ReadonlyArray<unknown> = Array.isArray(rest) ? rest : [rest]
  const answer = answers.find(lacksResult)
  if (answer === undefined) return undefined
  answer.result = list
  return rest
}

const lacksResult = (answer: unknown): answer is { result: unknown } =>
  typeof answer === "object" && answer !== null && "result" in answer && answer.result === PLACEHOLDER

/** The items of a list between its brackets. */
const parseList = (body: Buffer, start: number, end: number): ReadonlyArray<unknown> | undefined => {
  const pieces: Array<ReadonlyArray<unknown>> = []
  for (let at = start; at < end;) {
    const cut = body.indexOf("},", at + PIECE)
    const to = cut === -1 || cut >= end ? end : cut + 1
    const piece = parseText(`[${body.toString("utf8", at, to)}]`)
    if (!Array.isArray(piece)) return undefined
    pieces.push(piece)
    at = to + 1
  }
  return pieces.flat()
}

/**
 * Gives a long body's memory back at once, after which it is empty. Bodies that waited for their turn are freed by major
 * collections only, which megabytes of them would bring about every few ranges.
 */
export const releaseBody = (body: Uint8Array): void => {
  const { buffer } = body
  if (body.length > 2 * PIECE && body.length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
