import type { InterestSet } from "../../../core/plugin/source.ts"
import type { WatchedTransactions } from "../evm-rpc/selectors/transaction.ts"
import { type InterestInCalls, TransactionRouting } from "../evm-rpc/transaction-routing.ts"
import { readSelector, type Selector } from "./selector.ts"

/** The interests of one version, compiled. */
export interface Routing {
  readonly version: number
  readonly transactions: TransactionRouting
}

export const compileRouting = ({ version, interests }: InterestSet<Selector>): Routing => {
  const calls: Array<InterestInCalls> = []
  const transactions: Array<{ readonly id: string; readonly watched: WatchedTransactions }> = []
  for (const { id, selector } of interests) {
    const watched = readSelector(selector)
    if ("problems" in watched) continue
    if (watched.kind === "call") calls.push({ id, watched, children: null })
    else transactions.push({ id, watched })
  }
  return { version, transactions: new TransactionRouting(calls, transactions) }
}
