import type { NodeFault } from "../fault.ts"
import { onBlocks, onObjects } from "./answers.ts"

const QUANTITIES = new Set(["number", "timestamp", "blockNumber", "logIndex", "transactionIndex", "blockTimestamp"])

export const leadingZeros = (): NodeFault => ({
  name: "leading-zeros",
  says: "writes quantities with leading zeros",
  answer: onObjects((object) =>
    Object.fromEntries(
      Object.entries(object).map(([key, value]) =>
        QUANTITIES.has(key) && typeof value === "string" ? [key, `0x000${value.slice(2)}`] : [key, value],
      ),
    ),
  ),
})

/** What a source needs, and what monitors of transactions read; the rest may be missing. */
const REQUIRED = new Set(
  `number hash parentHash timestamp transactions blockHash blockNumber address topics data logIndex
   transactionHash from to value input status`.split(/\s+/),
)

/** Leaves out whatever a chain may not have. */
export const missingFields = (): NodeFault => ({
  name: "missing-fields",
  says: "leaves out every field that is not required",
  answer: onObjects((object) => Object.fromEntries(Object.entries(object).filter(([key]) => REQUIRED.has(key)))),
})

/** Transactions of a kind that nobody knows, without what others have. */
export const unknownTypes = (): NodeFault => ({
  name: "unknown-types",
  says: "has transactions of unknown types, without nonce and gas price",
  answer: onBlocks(({ transactions, ...block }) => ({
    ...block,
    size: null,
    l1FeeScalar: "0.684",
    transactions: (transactions as ReadonlyArray<unknown>).map((one) => {
      if (typeof one !== "object" || one === null) return one
      const {
        nonce: _,
        gas: __,
        maxFeePerGas: ___,
        maxPriorityFeePerGas: ____,
        ...rest
      } = one as Record<string, unknown>
      return { ...rest, type: "0x7e", mint: "0x0", sourceHash: `0x${"0".repeat(64)}` }
    }),
  })),
})

export const upperCase = (): NodeFault => ({
  name: "upper-case",
  says: "writes hashes and addresses in upper case",
  answer: onObjects((object) =>
    Object.fromEntries(
      Object.entries(object).map(([key, value]) =>
        typeof value === "string" && /^0x[0-9a-f]{40,64}$/.test(value)
          ? [key, `0x${value.slice(2).toUpperCase()}`]
          : [key, value],
      ),
    ),
  ),
})
