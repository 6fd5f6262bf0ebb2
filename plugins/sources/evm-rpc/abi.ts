import type { AbiEvent, AbiParameter } from "viem"
import type { FieldType, RecordType } from "../../../core/model/fields.ts"

/** An ABI parameter in which every name is given, at every depth. */
export interface NamedParameter {
  readonly name: string
  readonly type: string
  readonly indexed: boolean
  readonly components: ReadonlyArray<NamedParameter>
}

const componentsOf = (parameter: AbiParameter): ReadonlyArray<AbiParameter> =>
  "components" in parameter ? parameter.components : []

/**
 * Names what has no name: by its index if nothing of the record has a name, else `arg<index>` (a record that mixes
 * `"0"` with other names loses its order in JavaScript).
 */
export const nameParameters = (
  parameters: ReadonlyArray<AbiParameter | AbiEvent["inputs"][number]>,
): ReadonlyArray<NamedParameter> => {
  const anonymous = parameters.every((parameter) => !parameter.name)
  return parameters.map((parameter, i) => ({
    name: parameter.name || (anonymous ? `${i}` : `arg${i}`),
    type: parameter.type,
    indexed: "indexed" in parameter && parameter.indexed === true,
    components: nameParameters(componentsOf(parameter)),
  }))
}

/** Tuples and arrays within each other, counted together. Real ABIs have a handful. */
const MAX_DEPTH = 16

/** What is wrong with parameters that parsed: repeated names, types without a field type, too many levels. */
export const parameterProblems = (parameters: ReadonlyArray<NamedParameter>, depth = 0): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const names = new Set<string>()
  for (const { name, type, components } of parameters) {
    if (names.has(name)) problems.push(`two parameters have the name '${name}'; rename one of them`)
    names.add(name)
    if (type.startsWith("function")) problems.push(`the type of '${name}' (function) is not supported`)
    const levels = depth + type.split("[").length
    if (levels > MAX_DEPTH) problems.push(`'${name}' is nested deeper than ${MAX_DEPTH} levels of tuples and arrays`)
    else problems.push(...parameterProblems(components, levels))
  }
  return problems
}

const ARRAY = /^(.*)\[(\d*)\]$/

/** The type of the items if `type` is an array's. */
export const itemType = (type: string): string | undefined => ARRAY.exec(type)?.[1]

const WORD = /^(u?int\d*|bool|address|bytes\d+)$/

/** Whether values of the type fill exactly one word of 32 bytes. */
export const isWord = (type: string): boolean => WORD.test(type)

/** A record of parameters; it is hashed by position. */
export const recordOf = (parameters: ReadonlyArray<NamedParameter>): RecordType => ({
  kind: "record",
  positional: true,
  fields: Object.fromEntries(parameters.map((parameter) => [parameter.name, fieldTypeOf(parameter)])),
})

/** The name of the form of these arguments: what is decoded to the same fields has the same one. */
export const formName = (signature: string, parameters: ReadonlyArray<NamedParameter>): string =>
  JSON.stringify([signature, parameters])

/** Something with parameters, as a selector lists it. */
interface Listed {
  readonly signature: string
  readonly parameters: ReadonlyArray<NamedParameter>
}

/**
 * The arguments of whichever of several events or functions came. Predicates may read what has one type wherever it is
 * named; it is optional unless all have it.
 */
export const recordOfAny = (listed: ReadonlyArray<Listed>): RecordType => {
  const records = listed.map(({ parameters }) => recordOf(parameters))
  if (records.length === 1) return records[0]!
  const fields: Array<readonly [name: string, type: FieldType]> = []
  for (const name of new Set(records.flatMap((record) => Object.keys(record.fields)))) {
    const types = records.flatMap(({ fields }) => (Object.hasOwn(fields, name) ? [fields[name]!] : []))
    if (new Set(types.map((type) => JSON.stringify(type))).size > 1) continue
    fields.push([name, types.length === records.length ? types[0]! : { ...types[0]!, optional: true }])
  }
  return {
    kind: "record",
    fields: Object.fromEntries(fields),
    forms: Object.fromEntries(
      listed.map(({ signature, parameters }, i) => [formName(signature, parameters), records[i]!]),
    ),
  }
}

const fieldTypeOf = (parameter: NamedParameter): FieldType => {
  if (parameter.indexed && !isWord(parameter.type)) return { kind: "bytes" } // the topic holds its hash only
  return valueType(parameter.type, parameter.components)
}

const valueType = (type: string, components: ReadonlyArray<NamedParameter>): FieldType => {
  const items = itemType(type)
  if (items !== undefined) return { kind: "list", items: valueType(items, components) }
  if (type === "tuple") return recordOf(components)
  if (type === "bool" || type === "string" || type === "address") return { kind: type }
  return type.startsWith("bytes") ? { kind: "bytes" } : { kind: "int" }
}
