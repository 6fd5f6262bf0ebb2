import { toEventSelector } from "viem"
import { addressOf } from "../../server/devnet/simulated/transfer.ts"
import type { LogSpec } from "../../server/devnet/simulated/view.ts"

/** The factory of the tests. */
export const FACTORY = addressOf(0xfac)

/** Its event: the contract that it made is in the data. */
export const CREATED = "event PoolCreated(address indexed token, uint24 indexed fee, int24 spacing, address pool)"
const CREATED_TOPIC = toEventSelector(CREATED)

const word = (value: number): string => value.toString(16).padStart(64, "0")

/** The log by which a factory tells that it made the contract of this number. */
export const created = (child: number, { token = 7, factory = FACTORY } = {}): LogSpec => ({
  address: factory,
  topics: [CREATED_TOPIC, `0x${word(token)}`, `0x${word(500)}`],
  data: `0x${word(10)}${word(child)}`,
})
