import { type AbiParameter, decodeAbiParameters } from "viem"
import { type Fields, type FieldValue, FORM } from "../../../core/model/fields.ts"
import { areDigits } from "./wire.ts"
import { formName, isWord, itemType, type NamedParameter } from "./abi.ts"

/**
 * Decodes the arguments of one log from its topics and data, or of one call from its data. Throws if they do not fit; a
 * value that is read later throws only if its digits are no hex.
 */
export type DecodeArguments = (topics: ReadonlyArray<string>, data: string) => Fields

/** What has arguments. */
export interface Encoded {
  readonly signature: string
  readonly parameters: ReadonlyArray<NamedParameter>
  /** The topic of the first indexed parameter: 1, or 0 in an anonymous event. */
  readonly firstTopic: number
}

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

/** Compiles the decoder of the arguments of an event or function. */
export const compileArguments = (encoded: Encoded): DecodeArguments =>
  encoded.parameters.every(({ indexed, type }) => indexed || isWord(type))
    ? compileWords(encoded)
    : compileDynamic(encoded)

const topicReader = (type: string, topic: number): Read => {
  if (!isWord(type)) return (topics) => `0x${hexOf(topics[topic]!.slice(2))}`
  const read = wordReader(type)
  return (topics) => read(topics[topic]!.slice(2))
}

/** All arguments are words at known places: they are read from the hex when someone asks for them. */
const compileWords = ({ signature, parameters, firstTopic }: Encoded): DecodeArguments => {
  let nextTopic = firstTopic
  let word = 0
  const bools: Array<readonly [name: string, topic: number | null, start: number]> = []
  const reads = parameters.map(({ name, type, indexed }): Read => {
    if (indexed) {
      const topic = nextTopic++
      if (type === "bool") bools.push([name, topic, 2])
      return topicReader(type, topic)
    }
    const start = 2 + WORD * word++
    if (type === "bool") bools.push([name, null, start])
    const read = wordReader(type)
    return (_, data) => read(data.slice(start, start + WORD))
  })
  const dataLength = 2 + WORD * word
  const Arguments = lazyRecord(formName(signature, parameters), parameters, reads)
  return (topics, data) => {
    if (data.length < dataLength)
      throw new Error(`the data has ${(data.length - 2) / 2} bytes, its parameters need ${(dataLength - 2) / 2}`)
    for (const [name, topic, start] of bools)
      checkBool((topic === null ? data : topics[topic]!).slice(start, start + WORD), name)
    return new Arguments(topics, data)
  }
}

/**
 * A class whose instances read a value when it is used: most are used once, if at all, so nothing is kept. They have no
 * member but the arguments, so that an argument of another form is absent whatever its name.
 */
const lazyRecord = <From>(
  form: string,
  parameters: ReadonlyArray<NamedParameter>,
  reads: ReadonlyArray<(from: From, data: string) => FieldValue>,
): new (from: From, data: string) => Fields => {
  class Arguments {
    readonly [name: string]: FieldValue
    readonly #from: From
    readonly #data: string

    constructor(from: From, data: string) {
      this.#from = from
      this.#data = data
    }

    static {
      const { prototype } = Arguments
      Reflect.deleteProperty(prototype, "constructor")
      Object.setPrototypeOf(prototype, null)
      Object.defineProperty(prototype, FORM, { value: form })
      for (const [i, { name }] of parameters.entries()) {
        const read = reads[i]!
        Object.defineProperty(prototype, name, {
          enumerable: true,
          configurable: true,
          get(this: Arguments): FieldValue {
            return read(this.#from, this.#data)
          },
        })
      }
    }
  }
  return Arguments
}

/** What is not a word is decoded at once by viem, which bounds what hostile offsets can make of it. */
const compileDynamic = ({ signature, parameters, firstTopic }: Encoded): DecodeArguments => {
  const inData = parameters.filter(({ indexed }) => !indexed)
  const abi = inData.map(abiParameter)
  const converters = inData.map(({ type, components }) => converter(type, components))
  let nextTopic = firstTopic
  let next = 0
  const bools: Array<readonly [name: string, topic: number]> = []
  const reads = parameters.map(({ name, type, indexed }): ((values: Values) => FieldValue) => {
    if (!indexed) {
      const at = next++
      return ({ values }) => values[at]!
    }
    const topic = nextTopic++
    if (type === "bool") bools.push([name, topic])
    const read = topicReader(type, topic)
    return ({ topics }) => read(topics, "")
  })
  const Arguments = lazyRecord(formName(signature, parameters), parameters, reads)
  return (topics, data) => {
    for (const [name, topic] of bools) checkBool(topics[topic]!.slice(2), name)
    const values = decodeAbiParameters(abi, data as `0x${string}`)
    return new Arguments({ topics, values: values.map((value, i) => converters[i]!(value)) }, "")
  }
}

interface Values {
  readonly topics: ReadonlyArray<string>
  readonly values: ReadonlyArray<FieldValue>
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
