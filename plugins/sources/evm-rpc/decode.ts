import { type AbiParameter, decodeAbiParameters } from "viem"
import type { Fields, FieldValue } from "../../../core/model/fields.ts"
import { areDigits } from "./wire.ts"
import { isWord, itemType, type NamedParameter } from "./abi.ts"

/**
 * Decodes the arguments of one log from its topics (the first is the signature's) and data. Throws if they do not fit;
 * a value that is read later throws only if its digits are no hex.
 */
export type DecodeArguments = (topics: ReadonlyArray<string>, data: string) => Fields

type Read = (topics: ReadonlyArray<string>, data: string) => FieldValue

/** Hex digits of a word. */
const WORD = 64

/** Reads a value from the 64 hex digits of its word. */
const wordReader = (type: string): ((word: string) => FieldValue) => {
  if (type === "address") return (word) => `0x${hexOf(word.slice(24))}`
  if (type === "bool") return (word) => word.charCodeAt(WORD - 1) === 49
  if (type.startsWith("uint")) return (word) => BigInt(`0x${word}`)
  if (type.startsWith("int")) return (word) => BigInt.asIntN(256, BigInt(`0x${word}`))
  const digits = 2 * Number(type.slice("bytes".length))
  return (word) => `0x${hexOf(word.slice(0, digits))}`
}

/** Digits in lower case; what are none came from a node that answers nonsense. */
const hexOf = (digits: string): string => {
  if (!areDigits(digits)) throw new Error(`'${digits}' is no hex`)
  return digits.toLowerCase()
}

const ZEROS = "0".repeat(WORD - 1)

const checkBool = (word: string, name: string): void => {
  const last = word.charCodeAt(WORD - 1)
  if (!word.startsWith(ZEROS) || (last !== 48 && last !== 49))
    throw new Error(`the argument '${name}' is no bool: its word is neither 0 nor 1`)
}

/** Compiles the decoder of an event's arguments. */
export const compileArguments = (parameters: ReadonlyArray<NamedParameter>): DecodeArguments =>
  parameters.every(({ indexed, type }) => indexed || isWord(type))
    ? compileWords(parameters)
    : compileDynamic(parameters)

const topicReader = (type: string, topic: number): Read => {
  if (!isWord(type)) return (topics) => `0x${hexOf(topics[topic]!.slice(2))}`
  const read = wordReader(type)
  return (topics) => read(topics[topic]!.slice(2))
}

/** All arguments are words at known places: they are read from the hex when someone asks for them. */
const compileWords = (parameters: ReadonlyArray<NamedParameter>): DecodeArguments => {
  let topic = 0
  let word = 0
  const bools: Array<readonly [name: string, topic: number | null, start: number]> = []
  const reads = parameters.map(({ name, type, indexed }): Read => {
    if (indexed) {
      topic++
      if (type === "bool") bools.push([name, topic, 2])
      return topicReader(type, topic)
    }
    const start = 2 + WORD * word++
    if (type === "bool") bools.push([name, null, start])
    const read = wordReader(type)
    return (_, data) => read(data.slice(start, start + WORD))
  })
  const dataLength = 2 + WORD * word
  const Arguments = lazyRecord(
    parameters.map(({ name }) => name),
    reads,
  )
  return (topics, data) => {
    if (data.length < dataLength)
      throw new Error(`the data has ${(data.length - 2) / 2} bytes, the event needs ${(dataLength - 2) / 2}`)
    for (const [name, topic, start] of bools)
      checkBool((topic === null ? data : topics[topic]!).slice(start, start + WORD), name)
    return new Arguments(topics, data)
  }
}

/** A class whose instances read a value when it is used: most are used once, if at all, so nothing is kept. */
const lazyRecord = (
  names: ReadonlyArray<string>,
  reads: ReadonlyArray<Read>,
): new (topics: ReadonlyArray<string>, data: string) => Fields => {
  class Arguments {
    readonly [name: string]: FieldValue
    readonly #topics: ReadonlyArray<string>
    readonly #data: string

    constructor(topics: ReadonlyArray<string>, data: string) {
      this.#topics = topics
      this.#data = data
    }

    static {
      for (let i = 0; i < names.length; i++) {
        const read = reads[i]!
        Object.defineProperty(Arguments.prototype, names[i]!, {
          enumerable: true,
          configurable: true,
          get(this: Arguments): FieldValue {
            return read(this.#topics, this.#data)
          },
        })
      }
    }
  }
  return Arguments
}

const compileDynamic = (parameters: ReadonlyArray<NamedParameter>): DecodeArguments => {
  const inData = parameters.filter(({ indexed }) => !indexed)
  const abi = inData.map(abiParameter)
  const converters = inData.map(({ type, components }) => converter(type, components))
  let topic = 0
  const topics = parameters.map(({ type, indexed }) => (indexed ? topicReader(type, ++topic) : null))
  const bools = parameters.flatMap(({ name, type, indexed }, i) => {
    const position = parameters.slice(0, i + 1).filter((parameter) => parameter.indexed).length
    return indexed && type === "bool" ? [[name, position] as const] : []
  })
  return (logTopics, data) => {
    for (const [name, position] of bools) checkBool(logTopics[position]!.slice(2), name)
    const values = decodeAbiParameters(abi, data as `0x${string}`)
    let next = 0
    return Object.fromEntries(
      parameters.map(({ name }, i) => {
        const read = topics[i]
        if (read) return [name, read(logTopics, data)]
        const at = next++
        return [name, converters[at]!(values[at])]
      }),
    )
  }
}

/** Without names, so that viem yields tuples as arrays: a component may have any name. */
const abiParameter = ({ type, components }: NamedParameter): AbiParameter =>
  components.length === 0 ? { type } : { type, components: components.map(abiParameter) }

/** Turns what viem decodes into field values. */
const converter = (type: string, components: ReadonlyArray<NamedParameter>): ((value: unknown) => FieldValue) => {
  const items = itemType(type)
  if (items !== undefined) {
    const item = converter(items, components)
    return (value) => (value as ReadonlyArray<unknown>).map(item)
  }
  if (type === "tuple") {
    const members = components.map((component) => converter(component.type, component.components))
    return (value) =>
      Object.fromEntries(components.map(({ name }, i) => [name, members[i]!((value as ReadonlyArray<unknown>)[i])]))
  }
  if (type.startsWith("uint") || type.startsWith("int")) return (value) => BigInt(value as number | bigint)
  if (type === "address") return (value) => (value as string).toLowerCase()
  return (value) => value as string | boolean
}
