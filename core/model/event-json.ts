import { FieldMismatch } from "./field-mismatch.ts"
import {
  type AddressFormat,
  type EventShape,
  type Fields,
  type FieldType,
  type FieldValue,
  type Json,
  type JsonObject,
  ofForm,
  type RecordType,
} from "./fields.ts"

type Render = (value: FieldValue | undefined) => Json

/**
 * Compiles a shape to the function that makes an event's JSON of its fields: keys in the declared order, absent optional
 * fields null, fields that the shape does not name left out. The function throws `FieldMismatch` when a field does not
 * hold what the shape says. (JavaScript puts keys that are array indexes, `"0"`, before all others.)
 */
export const eventRenderer = (shape: EventShape): ((fields: Fields) => JsonObject) => {
  const render = recordRenderer(shape.fields, "", shape.address)
  return (fields) => render(fields) as JsonObject
}

const renderer = (type: FieldType, path: string, address: AddressFormat): Render => {
  const render = requiredRenderer(type, path, address)
  return type.optional === true ? (value) => (value === null || value === undefined ? null : render(value)) : render
}

const requiredRenderer = (type: FieldType, path: string, address: AddressFormat): Render => {
  switch (type.kind) {
    case "list":
      return listRenderer(renderer(type.items, `${path}.*`, address), path)
    case "record":
      return recordRenderer(type, `${path}.`, address)
    case "int":
      return (value) => {
        if (typeof value === "bigint") return value.toString()
        throw new FieldMismatch(path, "int", value)
      }
    case "address":
      return (value) => {
        if (typeof value === "string") return address.format(value)
        throw new FieldMismatch(path, "address", value)
      }
    case "number":
      return (value) => {
        if (Number.isSafeInteger(value)) return value as number
        throw new FieldMismatch(path, "number", value)
      }
    case "double":
      return (value) => {
        if (Number.isFinite(value)) return value as number
        throw new FieldMismatch(path, "double", value)
      }
    case "bool":
      return (value) => {
        if (typeof value === "boolean") return value
        throw new FieldMismatch(path, "bool", value)
      }
    case "string":
    case "bytes": {
      const kind = type.kind
      return (value) => {
        if (typeof value === "string") return value
        throw new FieldMismatch(path, kind, value)
      }
    }
  }
}

const listRenderer =
  (item: Render, path: string): Render =>
  (value) => {
    if (!Array.isArray(value)) throw new FieldMismatch(path, "list", value)
    return value.map((element: FieldValue) => item(element))
  }

const recordRenderer = (type: RecordType, prefix: string, address: AddressFormat): Render =>
  type.forms === undefined ? plainRenderer(type, prefix, address) : formRenderer(type.forms, prefix, address)

const formRenderer = (forms: NonNullable<RecordType["forms"]>, prefix: string, address: AddressFormat): Render => {
  const renders = new Map(Object.entries(forms).map(([form, type]) => [form, plainRenderer(type, prefix, address)]))
  return (value) => {
    if (typeof value !== "object" || value === null) throw new FieldMismatch(prefix.slice(0, -1), "record", value)
    const render = ofForm(renders, value)
    if (render === undefined) throw new FieldMismatch(prefix.slice(0, -1), "form", value)
    return render(value)
  }
}

const plainRenderer = (type: RecordType, prefix: string, address: AddressFormat): Render => {
  const names = Object.keys(type.fields)
  const renders = names.map((name) => renderer(type.fields[name]!, prefix + name, address))
  const set = names.includes("__proto__") ? define : assign
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new FieldMismatch(prefix.slice(0, -1), "record", value)
    const fields = value as Fields
    const out: { [name: string]: Json } = {}
    for (let i = 0; i < names.length; i++) set(out, names[i]!, renders[i]!(fields[names[i]!]))
    return out
  }
}

const assign = (out: { [name: string]: Json }, name: string, json: Json): void => {
  out[name] = json
}

/** `__proto__` is a valid argument name; assigning to it would set the prototype instead. */
const define = (out: { [name: string]: Json }, name: string, json: Json): void => {
  Object.defineProperty(out, name, { value: json, enumerable: true, configurable: true, writable: true })
}
