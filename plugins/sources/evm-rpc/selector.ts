import { Schema } from "effect"
import type { Problem } from "../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../core/plugin/source.ts"
import { blockDescription, BlockSelector, type WatchedBlocks } from "./selectors/block.ts"
import { CallSelector, describeCalls, readCalls, type WatchedCalls } from "./selectors/call.ts"
import { describeEvents, EventSelector, readEvents, type WatchedEvents } from "./selectors/event.ts"
import {
  readTransactionSelector,
  transactionDescription,
  TransactionSelector,
  type WatchedTransactions,
} from "./selectors/transaction.ts"

/** What a monitor looks for. */
export const Selector = Schema.Union([EventSelector, CallSelector, TransactionSelector, BlockSelector])
export type Selector = typeof Selector.Type

/** A selector that was understood. */
export type Watched = WatchedEvents | WatchedCalls | WatchedTransactions | WatchedBlocks

/** Understands a selector, or tells everything that is wrong with it. */
export const readSelector = (selector: Selector): Watched | { readonly problems: ReadonlyArray<Problem> } => {
  switch (selector.kind) {
    case "event":
      return readEvents(selector)
    case "call":
      return readCalls(selector)
    case "transaction":
      return readTransactionSelector(selector)
    case "block":
      return { kind: "block" }
  }
}

const describe = (watched: Watched): SelectorDescription => {
  switch (watched.kind) {
    case "event":
      return describeEvents(watched)
    case "call":
      return describeCalls(watched)
    case "transaction":
      return transactionDescription
    case "block":
      return blockDescription
  }
}

/** Checks a selector and says what it yields. */
export const describeSelector = (
  selector: Selector,
): SelectorDescription | { readonly problems: ReadonlyArray<Problem> } => {
  const watched = readSelector(selector)
  return "problems" in watched ? watched : describe(watched)
}
