import { Schema } from "effect"
import type { Problem } from "../../../../core/model/problem.ts"
import { nameParameters, type NamedParameter, parameterProblems } from "../abi.ts"
import { type JsonItem, readJsonItem } from "./json-abi.ts"
import { type AbiItem, expectedSignature, type ItemKind, parseSignature, structProblem } from "./signatures.ts"

/** One signature or several. */
export const Signatures = Schema.Union([Schema.String, Schema.Array(Schema.String)])

/** A whole ABI: signatures, or the JSON that compilers write. */
export const Abi = Schema.Array(Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]))

/** An event or function that a selector names. */
export interface Item<Kind extends ItemKind> {
  /** Where the selector names it. */
  readonly path: string
  readonly abi: AbiItem<Kind>
  readonly parameters: ReadonlyArray<NamedParameter>
}

/** Where events or functions are written: under their own key, or as an ABI. */
interface Written {
  readonly signatures: typeof Signatures.Type | undefined
  readonly abi: typeof Abi.Type | undefined
}

/** Reads the events or functions of a selector; everything that is wrong is added to `problems`. */
export const readItems = <Kind extends ItemKind>(
  kind: Kind,
  { signatures, abi }: Written,
  problems: Array<Problem>,
): ReadonlyArray<Item<Kind>> => {
  if ((signatures === undefined) === (abi === undefined)) {
    const message =
      abi === undefined
        ? `is missing; ${expectedSignature(kind)}, a list of them, or abi in its place`
        : `${kind} and abi are both given; leave one out`
    problems.push({ path: kind, message })
    return []
  }
  const items: Array<Item<Kind>> = []
  const add = (path: string, read: AbiItem<Kind> | string) => {
    if (typeof read === "string") {
      problems.push({ path, message: read })
      return
    }
    const parameters = nameParameters(read.inputs)
    const wrong = parameterProblems(parameters)
    for (const message of wrong) problems.push({ path, message })
    if (wrong.length === 0) items.push({ path, abi: read, parameters })
  }
  if (typeof signatures === "string") add(kind, parseSignature(kind, signatures))
  else if (signatures !== undefined) {
    if (signatures.length === 0) problems.push({ path: kind, message: `the list is empty; ${expectedSignature(kind)}` })
    for (const [i, text] of signatures.entries()) add(`${kind}.${i}`, parseSignature(kind, text))
  } else readAbi(kind, abi!, add, problems)
  return items
}

const readAbi = <Kind extends ItemKind>(
  kind: Kind,
  abi: typeof Abi.Type,
  add: (path: string, read: AbiItem<Kind> | string) => void,
  problems: Array<Problem>,
): void => {
  const structs = abi.filter((item) => typeof item === "string").filter((text) => /^\s*struct\s/.test(text))
  const before = problems.length
  let found = 0
  for (const [i, item] of abi.entries()) {
    const path = `abi.${i}`
    if (typeof item !== "string") {
      if (item["type"] !== kind) continue
      found++
      add(path, readJsonItem(kind, item as JsonItem))
    } else if (structs.includes(item)) {
      const message = structProblem(item, structs)
      if (message !== null) problems.push({ path, message })
    } else if (item.trimStart().startsWith(`${kind} `)) {
      found++
      add(path, parseSignature(kind, item, structs))
    } else if (!DECLARATION.test(item)) {
      problems.push({ path, message: `'${item.slice(0, 100)}' is no declaration; ${expectedSignature(kind)}` })
    }
  }
  if (found === 0 && problems.length === before) problems.push({ path: "abi", message: `it has no ${kind}` })
}

/** What an ABI may hold beside what is looked for. */
const DECLARATION = /^\s*(event|function|error|constructor|fallback|receive)\b/
