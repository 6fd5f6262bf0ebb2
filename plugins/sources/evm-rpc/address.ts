import { getAddress } from "viem"
import type { AddressFormat } from "../../../core/model/fields.ts"

const HEX_ADDRESS = /^0x[0-9a-fA-F]{40}$/

/** Checksums that are remembered: a hash each time would cost more than all the rest of a match's JSON. */
const REMEMBERED = 16_384

const checksums = new Map<string, string>()

/** The checksummed form of a canonical address. */
const checksum = (canonical: string): string => {
  let shown = checksums.get(canonical)
  if (shown === undefined) {
    shown = getAddress(canonical)
    if (checksums.size >= REMEMBERED) checksums.clear()
    checksums.set(canonical, shown)
  }
  return shown
}

/** Canonical is lower case, shown is the checksummed form. A mixed-case address must have the right checksum. */
export const evmAddress: AddressFormat = {
  parse: (text) => {
    if (!HEX_ADDRESS.test(text)) return null
    const digits = text.slice(2)
    const lower = digits.toLowerCase()
    const canonical = `0x${lower}` as const
    const oneCase = digits === lower || digits === digits.toUpperCase()
    return oneCase || getAddress(canonical) === text ? canonical : null
  },
  format: checksum,
}
