import { hash } from "node:crypto"

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== "object") return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => v !== undefined)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  )
}

/** A short hash of JSON that does not depend on the order of keys: 16 hex digits of its SHA-256. */
export const revisionOf = (value: unknown): string => hash("sha256", JSON.stringify(sorted(value)), "hex").slice(0, 16)
