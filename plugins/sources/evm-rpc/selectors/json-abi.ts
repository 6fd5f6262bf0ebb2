import type { AbiParameter } from "viem"
import type { AbiItem, ItemKind } from "./signatures.ts"

/** An entry of an ABI in JSON. */
export type JsonItem = Readonly<Record<string, unknown>>

const INTEGER = /^u?int(\d*)$/
const OTHER = /^(address|bool|string|tuple|function|bytes([1-9]|[12]\d|3[0-2])?)$/
const NAME = /^[A-Za-z_$][\w$]*$/

/** The elementary type in its full form, or null if there is none of that name. */
const elementary = (type: string): string | null => {
  const bits = INTEGER.exec(type)?.[1]
  if (bits === "") return `${type}256`
  if (bits !== undefined) return Number(bits) % 8 === 0 && Number(bits) > 0 && Number(bits) <= 256 ? type : null
  return OTHER.test(type) ? type : null
}

const show = (value: unknown): string => JSON.stringify(value)?.slice(0, 60) ?? "nothing"

/** Far more levels than are accepted later, few enough for the stack. */
const MAX_DEPTH = 64

const readParameters = (raw: unknown, what: string, depth = 0): ReadonlyArray<AbiParameter> | string => {
  if (!Array.isArray(raw)) return `the ${what} should be a list of parameters, not ${show(raw)}`
  if (depth > MAX_DEPTH) return "its tuples are nested too deep"
  const parameters: Array<AbiParameter> = []
  for (const item of raw as ReadonlyArray<unknown>) {
    const parameter = readParameter(item, what, depth)
    if (typeof parameter === "string") return parameter
    parameters.push(parameter)
  }
  return parameters
}

const readParameter = (raw: unknown, what: string, depth: number): AbiParameter | string => {
  const { name = "", type, indexed, components } = (typeof raw === "object" ? (raw ?? {}) : {}) as JsonItem
  if (typeof name !== "string" || (name !== "" && !NAME.test(name)))
    return `${show(name)} in its ${what} is no name of a parameter`
  const [, base, dimensions] = typeof type === "string" ? (/^([^[]*)((?:\[\d*\])*)$/.exec(type) ?? []) : []
  const full = base === undefined ? null : elementary(base)
  if (full === null) return `${show(type)} in its ${what} is no ABI type`
  const flags = { name, type: full + dimensions!, ...(indexed === true ? { indexed } : {}) }
  if (full !== "tuple") return flags
  const members = readParameters(components, `components of ${name === "" ? "a tuple" : name}`, depth + 1)
  return typeof members === "string" ? members : { ...flags, components: members }
}

/** Reads an event or function of an ABI in JSON, or says what is wrong with it. */
export const readJsonItem = <Kind extends ItemKind>(kind: Kind, item: JsonItem): AbiItem<Kind> | string => {
  const { name, inputs, anonymous } = item
  if (typeof name !== "string" || !NAME.test(name)) return `${show(name)} is no name of ${article[kind]}`
  const parameters = readParameters(inputs, "inputs")
  if (typeof parameters === "string") return `${kind} ${name}: ${parameters}`
  const read =
    kind === "event"
      ? { type: kind, name, inputs: parameters, ...(anonymous === true ? { anonymous } : {}) }
      : { type: kind, name, inputs: parameters, outputs: [], stateMutability: "nonpayable" }
  return read as unknown as AbiItem<Kind>
}

const article = { event: "an event", function: "a function" } as const
