import type { FieldType } from "./fields.ts"

/**
 * A field of an event does not hold what its shape says: an error of the source plugin, or a log that does not decode.
 * Names the path and the kinds, never the value.
 */
export class FieldMismatch extends Error {
  override readonly name = "FieldMismatch"

  constructor(path: string, kind: FieldType["kind"] | "form", value: unknown) {
    super(`event field '${path}' should be ${described[kind]}, but the source gave ${describe(value)}`)
  }
}

const described: Record<FieldType["kind"] | "form", string> = {
  bool: "a boolean (bool)",
  int: "a bigint (int)",
  number: "a safe integer (number)",
  double: "a finite number (double)",
  string: "a string (string)",
  bytes: "0x and an even number of hex digits (bytes)",
  address: "a string (address)",
  list: "an array (list)",
  record: "an object (record)",
  form: "an object of one of the forms that the shape names",
}

const describe = (value: unknown): string => {
  if (value === null || value === undefined) return "nothing (only optional fields may be absent)"
  if (Array.isArray(value)) return "an array"
  if (typeof value === "number") return `the number ${value}`
  return typeof value === "object" ? "an object" : `another ${typeof value}`
}
