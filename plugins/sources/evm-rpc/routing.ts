import type { InterestSet } from "../../../core/plugin/source.ts"
import { LogRouting } from "./log-routing.ts"
import { readSelector, type Selector, type Watched } from "./selector.ts"
import { TransactionRouting } from "./transaction-routing.ts"

/** How much of each block the interests need beside its logs. */
export type BlockNeed = "nothing" | "headers" | "transactions"

/** The interests of one version, compiled. */
export class Routing {
  readonly version: number
  readonly logs: LogRouting
  readonly transactions: TransactionRouting
  /** The interests in blocks. */
  readonly blocks: ReadonlyArray<string>

  constructor(set: InterestSet<Selector>) {
    this.version = set.version
    const read = set.interests.flatMap(({ id, selector }) => {
      const watched = readSelector(selector)
      return "problems" in watched ? [] : [{ id, watched }]
    })
    const ofKind = <Kind extends Watched["kind"]>(kind: Kind) =>
      read.filter((one): one is { id: string; watched: Extract<Watched, { kind: Kind }> } => one.watched.kind === kind)
    this.logs = new LogRouting(ofKind("event"))
    this.transactions = new TransactionRouting(ofKind("call"), ofKind("transaction"))
    this.blocks = ofKind("block").map(({ id }) => id)
  }

  get need(): BlockNeed {
    if (!this.transactions.isEmpty) return "transactions"
    return this.blocks.length > 0 ? "headers" : "nothing"
  }
}
