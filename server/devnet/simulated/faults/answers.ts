import type { NodeFault } from "../fault.ts"

type Raw = Readonly<Record<string, unknown>>
type Answered = NonNullable<NodeFault["answer"]>

/** Changes the logs that `eth_getLogs` answers. */
export const onLogs =
  (change: (logs: ReadonlyArray<Raw>, filter: any) => ReadonlyArray<unknown>): Answered =>
  ({ method, params }, _, answer) => {
    const given = answer()
    return method === "eth_getLogs" && "result" in given && Array.isArray(given.result)
      ? { result: change(given.result, params[0]) }
      : given
  }

/** Changes each block that is answered. */
export const onBlocks =
  (change: (block: Raw) => Raw): Answered =>
  ({ method }, _, answer) => {
    const given = answer()
    return method.startsWith("eth_getBlockBy") && "result" in given && given.result !== null
      ? { result: change(given.result as Raw) }
      : given
  }

/** Changes whatever is answered, all the way down. */
export const onObjects =
  (change: (object: Raw) => Raw): Answered =>
  (_, __, answer) => {
    const walk = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(walk)
      if (typeof value !== "object" || value === null) return value
      return change(Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(inner)])))
    }
    const given = answer()
    return "result" in given ? { result: walk(given.result) } : given
  }

/** Whether a call is for the newest block. */
export const asksForHead = ({ method, params }: { readonly method: string; readonly params: ReadonlyArray<any> }) =>
  method === "eth_blockNumber" || (method === "eth_getBlockByNumber" && params[0] === "latest")
