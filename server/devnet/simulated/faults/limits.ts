import type { NodeFault } from "../fault.ts"
import type { MethodError } from "../methods.ts"

/** How a node refuses a range. Counts are of blocks or logs; the hint is a range that would do. */
export interface LimitMessage {
  readonly kind: "structural" | "hint" | "too many"
  readonly error: (asked: {
    readonly from: number
    readonly to: number
    readonly max: number
    readonly fits: number
  }) => MethodError
}

const hex = (number: number): string => `0x${number.toString(16)}`

const structural = (message: (max: string, count: string) => string, code = -32000): LimitMessage => ({
  kind: "structural",
  error: ({ from, to, max }) => ({ code, message: message(String(max), String(to - from + 1)) }),
})

const tooMany = (message: (max: string) => string, code = -32005): LimitMessage => ({
  kind: "too many",
  error: ({ max }) => ({ code, message: message(String(max)) }),
})

const hint = (message: (from: number, to: number) => string): LimitMessage => ({
  kind: "hint",
  error: ({ from, fits }) => ({ code: -32602, message: message(from, fits) }),
})

/** The words of providers. */
export const LIMIT_MESSAGES: ReadonlyArray<LimitMessage> = [
  {
    kind: "structural",
    error: ({ from, to, max }) => ({
      code: -32000,
      message: `requested too many blocks from ${from} to ${to}, maximum is set to ${max}`,
    }),
  },
  structural((max) => `Max range: ${max}`),
  structural((max) => `Maximum allowed number of requested blocks is ${max}`),
  structural(() => "block range is too wide"),
  structural((max) => `block range is too wide (maximum ${max})`),
  structural((max) => `eth_getLogs is limited to a ${Number(max).toLocaleString("en")} range`),
  structural((max) => `eth_getLogs is limited to ${max} block`),
  structural((max, count) => `exceeds the range allowed for your plan (${count} > ${max})`),
  structural(() => "Block range limit exceeded."),
  structural((max) => `please limit the query to at most ${max} blocks`),
  structural((max) => `ranges over ${max} blocks are not supported on freetier`),
  structural((max, count) => `range ${count} exceeds limit of ${max}`, -32602),
  structural((max, count) => `block range too large (${count}), maximum allowed is ${max} blocks`),
  hint((from, to) => `Try with this block range [${hex(from)}, ${hex(to)}]`),
  hint((from, to) => `Log response size exceeded. this block range should work: [${hex(from)}, ${hex(to)}]`),
  hint((from, to) => `query exceeds max results 20000, retry with the range ${from}-${to}`),
  tooMany((max) => `query returned more than ${max} results`),
  tooMany((max) => `logs matched by query exceeds limit of ${max}`),
  tooMany(() => "response size should not greater than 10000000 bytes", -32000),
  tooMany(() => "Query timeout exceeded. Consider reducing your block range.", -32000),
]

const isRange = (method: string, filter: any): boolean => method === "eth_getLogs" && filter.fromBlock !== undefined

/** Refuses ranges of more than so many blocks, in these words. */
export const rangeLimit = (max: number, message: LimitMessage = LIMIT_MESSAGES[1]!): NodeFault => ({
  name: "range-limit",
  says: `refuses ranges of more than ${max} blocks`,
  answer: ({ method, params: [filter] }, _, given) => {
    if (!isRange(method, filter)) return given()
    const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
    return to - from + 1 > max ? { error: message.error({ from, to, max, fits: from + max - 1 }) } : given()
  },
})

/** Suggests the very range that it refuses. */
export const uselessHint = (max: number): NodeFault => ({
  ...rangeLimit(max, {
    kind: "hint",
    error: ({ from, to }) => ({ code: -32602, message: `Try with this block range [${hex(from)}, ${hex(to)}]` }),
  }),
  name: "useless-hint",
  says: `refuses ranges of more than ${max} blocks, and suggests the one that it was asked for`,
})

/** Refuses ranges that hold more than so many logs. */
export const resultLimit = (max: number, message: LimitMessage = LIMIT_MESSAGES[16]!): NodeFault => ({
  name: "result-limit",
  says: `refuses ranges with more than ${max} logs`,
  answer: ({ method, params: [filter] }, _, given) => {
    const answered = given()
    if (!isRange(method, filter) || !("result" in answered) || !Array.isArray(answered.result)) return answered
    const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
    const over = answered.result[max]
    return over === undefined
      ? answered
      : { error: message.error({ from, to, max, fits: Math.max(from, Number(over.blockNumber) - 1) }) }
  },
})

/** Says 413 to answers of more than so many bytes, with a JSON-RPC error or a page of HTML. */
export const tooLarge = (maxBytes: number, body: "json" | "html" = "json"): NodeFault => ({
  name: "too-large",
  says: `answers 413 in place of more than ${maxBytes} bytes`,
  respond: (_, text) =>
    text.length <= maxBytes
      ? undefined
      : {
          http: {
            status: 413,
            body:
              body === "html"
                ? "<html>413 Request Entity Too Large</html>"
                : '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"response too large"}}',
          },
        },
})

/** Takes so many requests, and then says 429 for so many, again and again. */
export const tooManyRequests = (
  options: { readonly retryAfter?: string; readonly serves?: number; readonly refuses?: number } = {},
): NodeFault => {
  const { retryAfter, serves = 0, refuses = 1 } = options
  let count = 0
  return {
    name: retryAfter === undefined ? "too-many-requests" : "too-many-requests-retry-after",
    says: `answers 429 ${retryAfter === undefined ? "without" : "with"} Retry-After`,
    respond: () =>
      count++ % (serves + refuses) < serves
        ? undefined
        : {
            http: {
              status: 429,
              body: "Too Many Requests",
              ...(retryAfter === undefined ? {} : { headers: { "retry-after": retryAfter } }),
            },
          },
  }
}

/** Says in a 200 that the quota is used up, under the code that others use for limits of ranges. */
export const quotaError = (message = "daily request count exceeded, request rate limited"): NodeFault => ({
  name: "quota-error",
  says: `answers every call "${message}"`,
  answer: () => ({ error: { code: -32005, message } }),
})

export const overloaded = (): NodeFault => ({
  name: "overloaded",
  says: "answers in a 200 that it has no healthy backend",
  answer: () => ({ error: { code: -32011, message: "no backend is currently healthy to serve traffic" } }),
})
