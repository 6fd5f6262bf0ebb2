import { CUSTOMERS } from "./customers.ts"

/** What is watched, and where. */
export interface Watched {
  readonly nodes: ReadonlyArray<string>
  readonly token: string
  /** The first block that is watched. */
  readonly start: number | "latest"
  /** How deep a deposit lies before it is credited: a number of blocks, `"safe"` or `"finalized"`. */
  readonly confirmations: number | "safe" | "finalized"
}

/** The network, and the monitor of transfers to the exchange's deposit addresses. Its matches go to the actions. */
export const resources = ({ nodes, token, start, confirmations }: Watched) => ({
  networks: [
    {
      id: "chain",
      module: "evm-rpc",
      config: { chain_id: 31_337, urls: nodes, start, confirmations, poll_interval_ms: 100 },
    },
  ],
  monitors: [
    {
      id: "deposits",
      network: "chain",
      selector: {
        kind: "event",
        address: token,
        event: "event Transfer(address indexed from, address indexed to, uint256 value)",
        args: { to: [...CUSTOMERS.keys()] },
      },
      sinks: ["actions"],
    },
  ],
})
