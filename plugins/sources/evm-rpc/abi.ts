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

/** What is wrong with parameters that parsed: repeated names, types without a field type. */
export const parameterProblems = (parameters: ReadonlyArray<NamedParameter>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const names = new Set<string>()
  for (const { name, type, components } of parameters) {
    if (names.has(name)) problems.push(`two parameters have the name '${name}'; rename one of them`)
    names.add(name)
    if (type.startsWith("function")) problems.push(`the type of '${name}' (function) is not supported`)
    problems.push(...parameterProblems(components))
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
