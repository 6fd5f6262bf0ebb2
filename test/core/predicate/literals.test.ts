import { assert, describe, it } from "@effect/vitest"
import { ALICE, BOB, eventWith, holds, problemsOf } from "./support.ts"

const upper = (address: string): string => `0x${address.slice(2).toUpperCase()}`

describe("addresses", () => {
  it("a literal is compared in its canonical form, on either side", () => {
    for (const alice of [ALICE, ALICE.toLowerCase(), upper(ALICE)]) {
      assert.isTrue(holds(`args.from == "${alice}" && "${alice}" == args.from && args.to != "${alice}"`))
      assert.isTrue(holds(`args.from in ["${BOB}", "${alice}"] && !(args.to in ["${alice}"])`))
      assert.isTrue(holds(`args.from in [args.to, "${alice}"] && "${alice}" in [args.from]`))
      assert.isTrue(holds(`"${alice}" in args.owners && args.owners == ["${alice}"]`))
      assert.isTrue(holds(`args.owners.exists(o, o == "${alice}") && args.orders.exists(o, o.maker == "${alice}")`))
      assert.isTrue(holds(`args.from == (args.ok ? "${alice}" : "${BOB}")`))
    }
  })

  it("fields are compared with fields", () => {
    assert.isTrue(holds("args.from != args.to && args.from == args.owners[0] && args.from in args.owners"))
  })

  it("each literal that is no address is a problem at its place", () => {
    assert.deepStrictEqual(problemsOf('args.to == "0x12" || args.from in ["bob", "alice.eth"]'), [
      'line 1, column 12: "0x12" is no address, but it is compared with one',
      'line 1, column 36: "bob" is no address, but it is compared with one',
      'line 1, column 43: "alice.eth" is no address, but it is compared with one',
    ])
  })

  it("text that is no literal cannot be compared with an address", () => {
    for (const source of [
      "args.to == name",
      "name != args.to",
      "args.to == '0x' + name",
      "name in args.owners",
      "args.to in [name]",
      `["${ALICE}"].exists(a, a == args.to)`,
      "args.to == 5",
      "args.to < args.from",
      "string(args.to) == ''",
      "args.to.startsWith('0x')",
    ]) {
      assert.strictEqual(problemsOf(source).length, 1, source)
      assert.match(problemsOf(source)[0] ?? "", /address/)
    }
  })
})

describe("bytes", () => {
  it("a literal is compared in lower case", () => {
    assert.isTrue(holds('args.data == "0xA9059CBB00" && "0XA9059cbb00" == args.data && args.data != "0x"'))
    assert.isTrue(holds('args.data in ["0x00", "0xA9059CBB00"] && "0xAB" in args.hashes'))
    assert.isTrue(holds('args.hashes == ["0xAB", "0xCD"] && args.data in [name, "0xA9059CBB00"]'))
  })

  it("a search in bytes ignores the case of a literal", () => {
    assert.isTrue(
      holds('args.data.startsWith("0xA9059CBB") && args.data.endsWith("BB00") && args.data.contains("9CBB")'),
    )
    assert.include(problemsOf('args.data.startsWith("transfer")')[0] ?? "", "only 0x and hex digits")
  })

  it("a literal that is not whole bytes in hex is a problem", () => {
    for (const text of ["0xabc", "abcd", "0xzz", ""]) {
      assert.include(problemsOf(`args.data == "${text}"`)[0] ?? "", "is compared with bytes")
      assert.include(problemsOf(`args.data in ["0xab", "${text}"]`)[0] ?? "", "is compared with bytes")
    }
  })

  it("they are text in every other respect", () => {
    assert.isTrue(holds("args.data == name", eventWith({}, { name: "0xa9059cbb00" })))
    assert.isTrue(
      holds("size(args.data) == 12 && args.data.substring(0, 10) == '0xa9059cbb' && args.data + '' != name"),
    )
  })
})
