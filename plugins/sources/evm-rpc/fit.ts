import { isWord, type NamedParameter } from "./abi.ts"
import { areDigits } from "./wire.ts"

/** Whether topics and data look as an event's arguments are encoded. */
export type Fits = (topics: ReadonlyArray<string>, data: string) => boolean

/** Hex digits of a word. */
const WORD = 64

const bitsOf = (type: string, prefix: string): number => Number(type.slice(prefix.length) || 256)

const paddedBy =
  (padding: string) =>
  (word: string): boolean =>
    word.startsWith(padding)

/** Whether the 64 hex digits are how a value of the type is encoded: padded as it should be, and in its bounds. */
const canonical = (type: string): ((word: string) => boolean) => {
  if (type === "address") return paddedBy("0".repeat(24))
  if (type === "bool") return (word) => /^0{63}[01]$/.test(word)
  if (type.startsWith("uint")) return paddedBy("0".repeat(WORD - bitsOf(type, "uint") / 4))
  if (type.startsWith("int")) {
    const bits = bitsOf(type, "int")
    return (word) => {
      const value = BigInt(`0x${word}`)
      return BigInt.asUintN(256, BigInt.asIntN(bits, value)) === value
    }
  }
  const padding = "0".repeat(WORD - 2 * Number(type.slice("bytes".length)))
  return (word) => word.endsWith(padding)
}

/**
 * Compiles the test for an anonymous event: nothing in a log names it, so other logs of its address are told from it by
 * what cannot be one of its arguments.
 */
export const compileFit = (parameters: ReadonlyArray<NamedParameter>): Fits => {
  const topicTests = parameters
    .filter(({ indexed }) => indexed)
    .map(({ type }) => (isWord(type) ? canonical(type) : () => true))
  const inData = parameters.filter(({ indexed }) => !indexed)
  const dataTests = inData.every(({ type }) => isWord(type)) ? inData.map(({ type }) => canonical(type)) : null
  return (topics, data) => {
    if (!topics.every((topic, i) => areDigits(topic, 2) && topicTests[i]!(topic.slice(2)))) return false
    if (!areDigits(data, 2)) return false
    if (dataTests === null) return data.length > 2
    return (
      data.length === 2 + WORD * dataTests.length &&
      dataTests.every((test, i) => test(data.slice(2 + WORD * i, 2 + WORD * (i + 1))))
    )
  }
}
