import type { NodeFault } from "../fault.ts"
import { shareOf } from "../random.ts"
import { onBlocks, onLogs } from "./answers.ts"

const ZERO_HASH = `0x${"0".repeat(64)}`

/** Leaves out some logs, always the same ones, under the right block hash; receipts have them. */
export const omitsLogs = (seed: number, share = 0.5): NodeFault => ({
  name: "omits-logs",
  says: "leaves out some logs, under the right block hash",
  answer: onLogs((logs) =>
    logs.filter(({ blockHash, logIndex }) => shareOf(`${seed} ${String(blockHash)} ${String(logIndex)}`) >= share),
  ),
})

export const emptyLogs = (): NodeFault => ({
  name: "empty-logs",
  says: "answers that there are no logs, whatever blooms say",
  answer: onLogs(() => []),
})

export const zeroBlooms = (): NodeFault => ({
  name: "zero-blooms",
  says: "answers blooms of zeros for blocks that have logs",
  answer: onBlocks((block) => ({ ...block, logsBloom: `0x${"0".repeat(512)}` })),
})

export const fullBlooms = (): NodeFault => ({
  name: "full-blooms",
  says: "answers blooms that announce every log there is",
  answer: onBlocks((block) => ({ ...block, logsBloom: `0x${"f".repeat(512)}` })),
})

const ABSENT = { null: null, zero: ZERO_HASH, "left out": undefined }

/** @param hash what stands for the transaction's */
export const logsWithoutTransaction = (hash: keyof typeof ABSENT = "null"): NodeFault => ({
  name: "logs-without-transaction",
  says: "tells no transaction with logs",
  answer: onLogs((logs) => logs.map((log) => ({ ...log, transactionHash: ABSENT[hash], transactionIndex: null }))),
})

export const duplicateLogs = (): NodeFault => ({
  name: "duplicate-logs",
  says: "answers every log twice",
  answer: onLogs((logs) => logs.flatMap((log) => [log, { ...log }])),
})

export const logsInDisorder = (): NodeFault => ({
  name: "logs-in-disorder",
  says: "answers logs newest first",
  answer: onLogs((logs) => logs.toReversed()),
})

export const contradictingLogs = (): NodeFault => ({
  name: "contradicting-logs",
  says: "answers two different logs under one index",
  answer: onLogs((logs) => logs.flatMap((log) => [log, { ...log, data: `0x${"1".repeat(64)}` }])),
})

export const removedLogs = (): NodeFault => ({
  name: "removed-logs",
  says: "marks logs as removed that are on the chain",
  answer: onLogs((logs) => logs.map((log) => ({ ...log, removed: true }))),
})

export const logsOfOtherBlock = (): NodeFault => ({
  name: "logs-of-other-block",
  says: "answers logs under the hash of another block",
  answer: onLogs((logs) => logs.map((log) => ({ ...log, blockHash: `0x${"bad0".repeat(16)}` }))),
})

export const logsOutside = (): NodeFault => ({
  name: "logs-outside",
  says: "answers logs of blocks that nobody asked for",
  answer: onLogs((logs) => logs.map((log) => ({ ...log, blockNumber: "0xffffff" }))),
})

/** A lie that nothing around it shows. */
export const alteredLogs = (): NodeFault => ({
  name: "altered-logs",
  says: "answers logs with other data, under the right block hash",
  answer: onLogs((logs) => logs.map((log) => ({ ...log, data: `0x${"2".repeat(64)}` }))),
})
