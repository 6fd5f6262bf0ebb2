import { Schema } from "effect"
import type { Problem } from "../../../../core/model/problem.ts"
import { evmAddress } from "../address.ts"

/** One address or several. */
export const Addresses = Schema.Union([Schema.String, Schema.Array(Schema.String)])
export type Addresses = typeof Addresses.Type

/** Reads addresses to their canonical form, each once; null for any. Adds what is wrong to `problems`. */
export const readAddresses = (
  path: string,
  written: Addresses | undefined,
  problems: Array<Problem>,
): ReadonlyArray<string> | null => {
  if (written === undefined) return null
  const listed = typeof written === "string" ? [written] : written
  if (listed.length === 0)
    problems.push({ path, message: "the list is empty; name an address, or leave the key out to match any" })
  const addresses = new Set<string>()
  for (const [i, text] of listed.entries()) {
    const canonical = evmAddress.parse(text)
    if (canonical === null)
      problems.push({
        path: typeof written === "string" ? path : `${path}.${i}`,
        message: `'${text}' is no address: expected 0x and 40 hex digits, in one case or with the right checksum`,
      })
    else addresses.add(canonical)
  }
  return [...addresses]
}
