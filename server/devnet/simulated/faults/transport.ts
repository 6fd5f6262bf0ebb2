import type { NodeFault, Refusal } from "../fault.ts"

const always = (name: string, says: string, refusal: Refusal): NodeFault => ({ name, says, respond: () => refusal })

export const html = (): NodeFault =>
  always("html", "answers a page of HTML with status 200", { http: { status: 200, body: "<html>hello</html>" } })

export const empty = (): NodeFault =>
  always("empty", "answers nothing with status 200", { http: { status: 200, body: "" } })

export const badGateway = (): NodeFault =>
  always("bad-gateway", "answers 502", { http: { status: 502, body: "<html>502 Bad Gateway</html>" } })

export const drops = (): NodeFault => always("drops", "closes connections without an answer", "drop")

export const hangs = (): NodeFault => always("hangs", "never answers", "hang")

export const slow = (delayMs: number): NodeFault => ({
  name: "slow",
  says: `takes ${delayMs} ms for each answer`,
  delayMs,
})

export const cutBodies = (): NodeFault => ({
  name: "cut-bodies",
  says: "answers half of its JSON",
  respond: (_, body) => ({ http: { status: 200, body: body.slice(0, body.length >> 1) } }),
})

/** Fails one answer of each batch, the second; a call that comes alone goes well. */
export const errorInBatch = (): NodeFault => ({
  name: "error-in-batch",
  says: "answers an error for one call of each batch",
  items: (items) =>
    items.map((item, i) =>
      i === 1 ? { jsonrpc: "2.0", id: item.id, error: { code: -32603, message: "internal error" } } : item,
    ),
})

export const missingInBatch = (): NodeFault => ({
  name: "missing-in-batch",
  says: "leaves one answer out of each batch",
  items: (items) => (items.length > 1 ? items.slice(0, -1) : items),
})

export const resultAndError = (): NodeFault => ({
  name: "result-and-error",
  says: "answers an empty result beside an error",
  items: (items) => items.map((item) => ({ ...item, result: [], error: { code: -32603, message: "internal error" } })),
})

export const wrongIds = (): NodeFault => ({
  name: "wrong-ids",
  says: "answers under ids that nobody used",
  items: (items) => items.map((item) => ({ ...item, id: 987_654_321 })),
})

export const nullResults = (): NodeFault => ({
  name: "null-results",
  says: "answers null where logs should be",
  answer: ({ method }, _, given) => (method === "eth_getLogs" ? { result: null } : given()),
})

export const internalErrors = (): NodeFault => ({
  name: "internal-errors",
  says: "answers every call with an internal error",
  answer: () => ({ error: { code: -32603, message: "internal error" } }),
})

export const noBatches = (): NodeFault => ({
  name: "no-batches",
  says: "takes one call in a request only",
  respond: (calls) =>
    calls.length === 1
      ? undefined
      : {
          http: {
            status: 200,
            body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported"}}',
          },
        },
})

export const lacksMethod = (lacking: string): NodeFault => ({
  name: "lacks-method",
  says: `does not know ${lacking}`,
  answer: ({ method }, _, given) =>
    method === lacking
      ? { error: { code: -32601, message: `the method ${method} does not exist/is not available` } }
      : given(),
})
