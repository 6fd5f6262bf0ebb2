import { hash } from "node:crypto"
import { canonicalJson } from "../model/canonical.ts"

/** A short hash of JSON that does not depend on the order of keys: 16 hex digits of its SHA-256. */
export const revisionOf = (value: unknown): string => hash("sha256", canonicalJson(value), "hex").slice(0, 16)
