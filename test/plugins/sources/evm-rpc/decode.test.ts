import { assert, describe, it } from "vitest"
import { toEventSelector } from "viem"
import { nameParameters, recordOf } from "../../../../plugins/sources/evm-rpc/abi.ts"
import { compileArguments } from "../../../../plugins/sources/evm-rpc/decode.ts"
import {
  encodeCall,
  encodeLog,
  everyAnonymous,
  everyType,
  functionOf,
  parseEvent,
  viemArguments,
  viemCallArguments,
} from "./abi-samples.ts"
import { plain } from "./driver.ts"

const compile = (text: string) => {
  const event = parseEvent(text)
  const parameters = nameParameters(event.inputs)
  const encoded = { signature: event.name, parameters, firstTopic: text.endsWith("anonymous") ? 0 : 1 }
  return { event, decode: compileArguments(encoded), type: recordOf(parameters) }
}

const upper = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`

describe("decoding arguments", () => {
  for (const [text, values] of [...everyType, ...everyAnonymous])
    it(`agrees with viem on ${text}`, () => {
      const { event, decode, type } = compile(text)
      const log = encodeLog(event, values)
      assert.deepStrictEqual(plain(type, decode(log.topics, log.data)), viemArguments(event, log))
    })

  for (const [text, values] of everyType)
    it(`agrees with viem on calls of what has the arguments of ${text}`, () => {
      const abi = functionOf(parseEvent(text))
      const parameters = nameParameters(abi.inputs)
      const data = encodeCall(abi, values)
      const args = compileArguments({ signature: abi.name, parameters, firstTopic: 0 })([], `0x${data.slice(10)}`)
      assert.deepStrictEqual(plain(recordOf(parameters), args), viemCallArguments(abi, data))
    })

  it("has no member but the arguments", () => {
    for (const text of ["event E(uint256 a)", "event E(string a)"]) {
      const { event, decode } = compile(text)
      const { topics, data } = encodeLog(event, [text.includes("string") ? "x" : 1n])
      const args = decode(topics, data)
      for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty", "b"]) assert.isUndefined(args[name])
    }
  })

  it("reads hex in any case", () => {
    const { event, decode, type } = compile("event E(address indexed a, bytes4 b, string indexed c)")
    const log = encodeLog(event, ["0x00000000000000000000000000000000000000ab", "0xabcdef01", "x"])
    assert.deepStrictEqual(
      plain(type, decode(log.topics.map(upper), upper(log.data))),
      plain(type, decode(log.topics, log.data)),
    )
  })

  it("fails over digits that are no hex, when they are read", () => {
    const { decode } = compile("event E(address indexed a, bytes4 b, string indexed c, uint256 d)")
    const word = "g".repeat(64)
    const args = decode([`0x${"1".repeat(64)}`, `0x${word}`, `0x${word}`], `0x${word}${word}`)
    for (const name of ["a", "b", "c", "d"]) assert.throws(() => args[name])
  })

  it("allows any argument name", () => {
    const parameters = [
      { name: "constructor", type: "uint256" },
      { name: "__proto__", type: "bool" },
      { name: "toString", type: "address" },
    ]
    const decode = compileArguments({ signature: "E", parameters: nameParameters(parameters), firstTopic: 1 })
    const args = decode([toEventSelector("event E()")], `0x${"0".repeat(63)}5${"0".repeat(63)}1${"0".repeat(64)}`)
    assert.strictEqual(args["constructor"], 5n)
    assert.strictEqual(args["__proto__"], true)
    assert.strictEqual(args["toString"], `0x${"0".repeat(40)}`)
  })

  const undecodable: ReadonlyArray<readonly [string, string]> = [
    ["event E(uint a, uint b)", `0x${"0".repeat(127)}`],
    ["event E(uint a)", "0x"],
    ["event E(bool a)", `0x${"0".repeat(63)}2`],
    ["event E(string a)", "0x"],
    ["event E(string a)", `0x${"f".repeat(64)}`],
    ["event E(uint[] a)", `0x${"0".repeat(62)}20${"f".repeat(64)}`],
  ]
  for (const [text, data] of undecodable)
    it(`throws at once for ${text} with the data ${data.slice(0, 12)}…`, () => {
      const { event, decode } = compile(text)
      assert.throws(() => decode([toEventSelector(event)], data))
    })
})
