import { Schema } from "effect"
import { keccak256, stringToHex } from "viem"
import { isWord, type NamedParameter } from "../abi.ts"
import { evmAddress } from "../address.ts"

const Value = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])

/** Values that indexed arguments must have: one, or any of a list. */
export const ArgumentFilter = Schema.Record(Schema.String, Schema.Union([Value, Schema.Array(Value)]))
export type ArgumentFilter = typeof ArgumentFilter.Type

type Value = typeof Value.Type

/** Digits of a word. */
const WORD = 64

const integerOf = (value: Value): bigint | null => {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : null
  return typeof value === "string" && /^(-?\d{1,80}|0x[0-9a-fA-F]{1,64})$/.test(value) ? BigInt(value) : null
}

const integerTopic = (type: string, value: Value): string | null => {
  const integer = integerOf(value)
  if (integer === null) return null
  const bits = Number(type.replace(/^u?int/, "") || 256)
  const kept = type.startsWith("u") ? BigInt.asUintN(bits, integer) : BigInt.asIntN(bits, integer)
  return kept === integer ? BigInt.asUintN(256, integer).toString(16).padStart(WORD, "0") : null
}

const hexOf = (value: Value, bytes?: number): string | null => {
  if (typeof value !== "string" || !/^0x([0-9a-fA-F]{2})*$/.test(value)) return null
  return bytes === undefined || value.length === 2 + 2 * bytes ? value.slice(2).toLowerCase() : null
}

const digitsOf = (type: string, value: Value): string | null => {
  if (type === "address") return typeof value === "string" ? padded(evmAddress.parse(value)) : null
  if (type === "bool") return typeof value === "boolean" ? integerTopic("uint8", value ? 1 : 0) : null
  if (/^u?int\d*$/.test(type)) return integerTopic(type, value)
  if (isWord(type)) return hexOf(value, Number(type.slice("bytes".length)))?.padEnd(WORD, "0") ?? null
  if (type === "string") return typeof value === "string" ? keccak256(stringToHex(value)).slice(2) : null
  if (type === "bytes") {
    const hex = hexOf(value)
    return hex === null ? null : keccak256(`0x${hex}`).slice(2)
  }
  return hexOf(value, 32)
}

const padded = (address: string | null): string | null => address?.slice(2).padStart(WORD, "0") ?? null

const expectedOf = (type: string): string => {
  if (type === "address") return "an address"
  if (type === "bool") return "true or false"
  if (/^u?int\d*$/.test(type)) return `an integer that fits ${type}; large ones are written as strings`
  if (isWord(type)) return `0x and ${2 * Number(type.slice("bytes".length))} hex digits`
  if (type === "string") return "a string"
  if (type === "bytes") return "0x and hex digits"
  return "0x and the 64 hex digits of its hash: the topic of an array or tuple holds nothing else"
}

/** The topic that a log has if an indexed argument has the value, or what is expected in place of a value that it cannot have. */
export const topicOf = (
  { type }: NamedParameter,
  value: Value,
): { readonly topic: string } | { readonly expected: string } => {
  const digits = digitsOf(type, value)
  return digits === null ? { expected: expectedOf(type) } : { topic: `0x${digits}` }
}
