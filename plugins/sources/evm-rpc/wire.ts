/** An answer does not have the shape that the method promises; the provider gave it, not the network. */
export class MalformedAnswer extends Error {
  override readonly name = "MalformedAnswer"
}

/** The value of each hex digit by its character code, and `NO_DIGIT` for all else. Logs are checked a digit at a time. */
const DIGITS = new Uint8Array(256).fill(255)
const NO_DIGIT = 255
for (const [value, digit] of [..."0123456789abcdef"].entries()) {
  DIGITS[digit.charCodeAt(0)] = value
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value
}

const digitAt = (text: string, i: number): number => DIGITS[text.charCodeAt(i)] ?? NO_DIGIT

const isHex = (text: string): boolean => text.startsWith("0x") && areDigits(text, 2)

/** Whether all characters from `start` on are hex digits. */
export const areDigits = (text: string, start = 0): boolean => {
  for (let i = start; i < text.length; i++) if (digitAt(text, i) === NO_DIGIT) return false
  return true
}

/** Characters of `0x` and so many bytes. */
export const HASH_LENGTH = 66
const ADDRESS_LENGTH = 42

const show = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing"
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

/** A safe integer of a quantity; leading zeros are accepted. */
export const readQuantity = (value: unknown, what: string): number => {
  if (typeof value === "string" && value.length > 2 && value.startsWith("0x")) {
    let number = 0
    for (let i = 2; i < value.length; i++) {
      const digit = digitAt(value, i)
      number = digit === NO_DIGIT ? Number.NaN : number * 16 + digit
    }
    if (Number.isSafeInteger(number)) return number
  }
  throw new MalformedAnswer(`${what} should be a hex quantity, but is ${show(value)}`)
}

/** An integer of a quantity, whatever its size; leading zeros are accepted. */
export const readInteger = (value: unknown, what: string): bigint => {
  if (typeof value === "string" && value.length > 2 && value.length <= HASH_LENGTH && isHex(value)) return BigInt(value)
  throw new MalformedAnswer(`${what} should be a hex quantity, but is ${show(value)}`)
}

export const toQuantity = (number: number): string => `0x${number.toString(16)}`

/** 32 bytes, in lower case. */
export const readHash = (value: unknown, what: string): string => {
  if (typeof value === "string" && value.length === HASH_LENGTH && isHex(value)) return value.toLowerCase()
  throw new MalformedAnswer(`${what} should be a hash of 32 bytes, but is ${show(value)}`)
}

/** 20 bytes, in lower case. */
export const readAddress = (value: unknown, what: string): string => {
  if (typeof value === "string" && value.length === ADDRESS_LENGTH && isHex(value)) return value.toLowerCase()
  throw new MalformedAnswer(`${what} should be an address of 20 bytes, but is ${show(value)}`)
}

/** Hex of whole bytes, as it came. */
export const readBytes = (value: unknown, what: string): string => {
  if (typeof value === "string" && value.length % 2 === 0 && isHex(value)) return value
  throw new MalformedAnswer(`${what} should be bytes in hex, but is ${show(value)}`)
}

/** 32 bytes in hex, as they came. */
export const isWordHex = (value: unknown): value is string =>
  typeof value === "string" && value.length === HASH_LENGTH && isHex(value)

export const readObject = (value: unknown, what: string): Readonly<Record<string, unknown>> => {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>
  throw new MalformedAnswer(`${what} should be an object, but is ${show(value)}`)
}
