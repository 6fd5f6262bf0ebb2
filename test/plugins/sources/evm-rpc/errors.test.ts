import { assert, describe, it } from "vitest"
import { classify, type Classified } from "../../../../plugins/sources/evm-rpc/rpc/errors.ts"

const range = (blocks?: number): Classified =>
  blocks === undefined ? { kind: "range" } : { kind: "range", hint: { blocks } }
const tooMany = (from?: number, to?: number): Classified =>
  from === undefined ? { kind: "too-many" } : { kind: "too-many", hint: { from, to: to! } }

const table: ReadonlyArray<
  readonly [message: string, expected: Classified, code?: number | undefined, status?: number]
> = [
  ["requested too many blocks from 100 to 20100, maximum is set to 2048", range(2048)],
  ["Max range: 800", range(800)],
  ["Maximum allowed number of requested blocks is 5000", range(5000)],
  ["block range is too wide", range()],
  ["block range is too wide (maximum 1024)", range(1024)],
  ["eth_getLogs is limited to a 10,000 range", range(10_000)],
  ["eth_getLogs is limited to 50 block", range(50)],
  ["eth_getLogs is limited to 0 - 10000 blocks range", range(10_000)],
  ["exceeds the range allowed for your plan (2000 > 500)", range(500)],
  ["Block range limit exceeded.", range()],
  ["please limit the query to at most 1000 blocks", range(1000)],
  ["ranges over 10000 blocks are not supported on freetier", range(10_000)],
  ["range 1000000 exceeds limit of 10000", range(10_000), -32602],
  ["block range too large (2000), maximum allowed is 1000 blocks", range(1000)],
  ["block range too large (2000), maximum allowed is 1000 blocks", range(1000), -32005, 429],
  ["exceed maximum block range: 50000", range(50_000)],
  ["Try with this block range [0x10, 0x20]", tooMany(16, 32)],
  ["Log response size exceeded. this block range should work: [0x1, 0xff]", tooMany(1, 255), -32602],
  ["query exceeds max results 20000, retry with the range 100-250", tooMany(100, 250), -32602],
  ["query returned more than 10000 results", tooMany(), -32005],
  ["query returned more than 10000 results. Try with this block range [0x6, 0x9].", tooMany(6, 9), -32005],
  ["logs matched by query exceeds limit of 10000", tooMany(), -32005],
  ["response size should not greater than 10000000 bytes", tooMany()],
  ["Query timeout exceeded. Consider reducing your block range.", tooMany()],
  ["Request Entity Too Large", tooMany(), undefined, 413],
  ["no backend is currently healthy to serve traffic", { kind: "overload" }, -32011],
  ["service temporarily unavailable", { kind: "overload" }],
  ["whatever", { kind: "overload" }, undefined, 503],
  ["slow down", { kind: "quota" }, undefined, 429],
  ["rate limit exceeded", { kind: "quota" }, -32005],
  ["daily request count exceeded, request rate limited", { kind: "quota" }, -32005],
  ["Your app has exceeded its compute units per second capacity", { kind: "quota" }, 429],
  ["project quota exceeded", { kind: "quota" }, -32005],
  ["Too Many Requests", { kind: "quota" }, -32000],
  ["limit exceeded", { kind: "quota" }, -32005],
  ["limit exceeded for logs", tooMany(), -32005],
  ["unknown block", { kind: "missing" }],
  ["header not found", { kind: "missing" }],
  ["missing trie node 1234", { kind: "missing" }],
  ["height is not available (requested height: 10, base height: 2,000)", { kind: "missing", lowest: 2000 }],
  ["the method eth_foo does not exist/is not available", { kind: "unsupported" }, -32601],
  ["Unsupported method: eth_foo", { kind: "unsupported" }, -32000],
  ["parse error", { kind: "malformed" }, -32700],
  ["execution reverted", { kind: "refused" }, 3],
]

describe("what providers say about a failed call", () => {
  for (const [message, expected, code = -32000, status = 200] of table)
    it(`"${message}" (${code}, HTTP ${status}) is ${expected.kind}`, () => {
      assert.deepStrictEqual(classify({ status, code, message }), expected)
    })
})
