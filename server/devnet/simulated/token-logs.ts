import { type Address, encodeAbiParameters, encodeEventTopics } from "viem"
import { TOKEN_ABI, TOKEN_ADDRESS } from "../token.ts"
import type { Move } from "../traffic.ts"
import type { LogSpec } from "./view.ts"

/** Those that the simulated token moves between. */
export const HOLDERS: ReadonlyArray<Address> = [1, 2, 3, 4, 5].map(
  (holder) => `0x${String(holder).repeat(40)}` as const,
)

/** The log that the token emits for a move. */
export const logOf = ({ kind, from, to, value }: Move): LogSpec => ({
  address: TOKEN_ADDRESS.toLowerCase(),
  topics: encodeEventTopics({
    abi: TOKEN_ABI,
    ...(kind === "transfer"
      ? { eventName: "Transfer", args: { from, to } }
      : { eventName: "Approval", args: { owner: from, spender: to } }),
  }) as ReadonlyArray<string>,
  data: encodeAbiParameters([{ type: "uint256" }], [value]),
})
