import type { Cursor } from "../../../../core/model/cursor.ts"
import type { SourceRecord } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import type { SimulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { CREATED, FACTORY } from "../../../support/factory.ts"
import { type Driven, makeSource, quick } from "./driver.ts"

/** What makes the contracts of the tests. */
export const factory = { address: FACTORY, event: CREATED, param: "pool" }

/** Transfers of the contracts that the factory made. */
export const ofChildren = (more: object = {}, event: string = TRANSFER): Selector => ({
  kind: "event",
  event,
  address: { factory: { ...factory, ...more } },
})

/** A Transfer of the contract of this number. */
export const moved = (child: number) => transfer(child, 1, 2, child)

/** What a database would hold of the records of a run: see `Storage.mint`. */
export const recordsOf = ({ batches }: Driven): ReadonlyArray<SourceRecord> => {
  const kept = new Map<string, SourceRecord>()
  const id = ({ key, value }: Pick<SourceRecord, "key" | "value">) => `${key} ${value}`
  for (const { records = [], forget = [] } of batches) {
    for (const one of forget) kept.delete(id(one))
    for (const one of records) kept.set(id(one), one)
  }
  return [...kept.values()]
}

/** Children that are recorded, by the block and index of the log that tells of them. */
export const childrenOf = (records: ReadonlyArray<SourceRecord>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    records.flatMap(({ value, cursor }) =>
      value.startsWith("0x") ? [[`${Number(value)}`, `${cursor.primary}:${cursor.secondary - 2 ** 20}`]] : [],
    ),
  )

/** What a run behind `cursor` is given of an earlier one. */
export const resumed = (before: Driven, cursor: Cursor = before.batches.at(-1)!.upTo) => ({
  cursor,
  anchors: before.anchors.filter(({ primary }) => primary <= cursor.primary),
  records: recordsOf(before).filter(({ cursor: { primary } }) => primary <= cursor.primary),
})

/** The calls of a method, in place of counting them alone. */
export const spy = (node: SimulatedNode): Array<{ readonly method: string; readonly filter: any }> => {
  const calls: Array<{ readonly method: string; readonly filter: any }> = []
  node.fault = (method, params) => {
    calls.push({ method, filter: params[0] })
    return undefined
  }
  return calls
}

/** The source over one node. */
export const source = (node: SimulatedNode, more: object = {}) => makeSource({ ...quick, url: node.url, ...more })
