import {
  type AbiEvent,
  type AbiFunction,
  decodeEventLog,
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseAbiItem,
  toEventSelector,
  toHex,
} from "viem"

const a = "0x52908400098527886E0F7030069857D2E4169EE7"
const b = "0x00000000000000000000000000000000000000ab"
const bytes32 = `0x${"ab".repeat(32)}`
const max = 2n ** 256n - 1n
const min = -(2n ** 255n)

/** Events over all ABI types, with values for their arguments. */
export const everyType: ReadonlyArray<readonly [event: string, values: ReadonlyArray<unknown>]> = [
  ["event None()", []],
  [
    "event Words(uint256 a, int256 b, address c, bool d, bytes32 e, bytes4 f)",
    [max, min, a, true, bytes32, "0xdeadbeef"],
  ],
  ["event Indexed(uint256 indexed a, int256 indexed b, address indexed c)", [max, -1n, a]],
  ["event IndexedSmall(bool indexed a, bytes4 indexed b, int8 indexed c)", [true, "0xdeadbeef", -128]],
  [
    "event Small(uint8 a, uint48 b, uint56 c, int8 d, int24 e, int128 f)",
    [255, 281474976710655, 2n ** 56n - 1n, -1, -8388608, -5n],
  ],
  ["event Mixed(uint256 a, address indexed b, bool c, uint256 indexed d)", [1n, b, false, 2n]],
  ["event Text(string a, bytes b)", ["Grüße, 世界", "0x0102"]],
  ["event EmptyText(string a, bytes b)", ["", "0x"]],
  ["event IndexedDynamic(string indexed a, bytes indexed b, uint256[] indexed c)", ["text", "0x01", [1n, 2n]]],
  ["event MixedDynamic(bool indexed a, string b, uint256 c)", [true, "text", 7n]],
  [
    "event Arrays(uint256[] a, address[2] b, bool[][] c, int16[2][] d)",
    [[1n, 2n], [a, b], [[true], [], [false, true]], [[-1, 2]]],
  ],
  [
    "event Tuple((uint256 x, (address y, string z)[] w) t)",
    [
      {
        x: 5n,
        w: [
          { y: a, z: "one" },
          { y: b, z: "two" },
        ],
      },
    ],
  ],
  ["event StaticTuple((uint8 x, bytes3 y) t, uint256 u)", [{ x: 3, y: "0x010203" }, 9n]],
  [
    "event TupleArray((uint256 x, bool y)[2][] t)",
    [
      [
        [
          { x: 1n, y: true },
          { x: 2n, y: false },
        ],
      ],
    ],
  ],
  ["event Bytes(bytes1 a, bytes31 b, bytes32[] c)", ["0xff", `0x${"cd".repeat(31)}`, [bytes32]]],
  [
    "event Deep((int256[2][] a, (bytes1 b, string[] c)[2] d)[] x, int8[3] y, (int40 e, int256 f) z)",
    [
      [
        {
          a: [
            [min, -1n],
            [1n, 0n],
          ],
          d: [
            { b: "0x01", c: ["", "two", "ü"] },
            { b: "0xff", c: [] },
          ],
        },
      ],
      [-128, 0, 127],
      { e: -(2 ** 39), f: min },
    ],
  ],
  ["event Unnamed(uint256, (address, bytes) , string)", [1n, [a, "0x00"], "x"]],
]

/** Anonymous events, with values for their arguments. */
export const everyAnonymous: ReadonlyArray<readonly [event: string, values: ReadonlyArray<unknown>]> = [
  ["event Zero(uint256 a, bool b) anonymous", [7n, true]],
  ["event One(address indexed a, int64 b) anonymous", [a, -3n]],
  ["event Two(bool indexed a, bytes4 indexed b, string c) anonymous", [false, "0xdeadbeef", "text"]],
  [
    "event Three(int8 indexed a, string indexed b, uint8 indexed c, (int8 d, bytes e)[] f) anonymous",
    [-1, "x", 9, [{ d: -2, e: "0x0102" }]],
  ],
  [
    "event Four(int256 indexed a, uint8 indexed b, bytes1 indexed c, address indexed d) anonymous",
    [min, 255, "0xff", b],
  ],
]

interface EncodedLog {
  readonly topics: Array<Hex>
  readonly data: Hex
}

const ANONYMOUS = / anonymous$/

export const parseEvent = (text: string): AbiEvent => {
  const event = parseAbiItem(text.replace(ANONYMOUS, "") as "event E()") as unknown as AbiEvent
  return ANONYMOUS.test(text) ? { ...event, anonymous: true } : event
}

/** The log of an event with these arguments. Indexed values without a fixed size are some hash. */
export const encodeLog = (event: AbiEvent, values: ReadonlyArray<unknown>): EncodedLog => {
  const topics = "anonymous" in event && event.anonymous === true ? [] : [toEventSelector(event)]
  for (const [i, input] of event.inputs.entries()) {
    if (!input.indexed) continue
    const word = /^(u?int\d*|bool|address|bytes\d+)$/.test(input.type)
    topics.push(word ? encodeAbiParameters([input], [values[i]]) : keccak256(toHex(String(values[i]))))
  }
  const data = encodeAbiParameters(
    event.inputs.filter((input) => !input.indexed),
    event.inputs.flatMap((input, i) => (input.indexed ? [] : [values[i]])),
  )
  return { topics, data }
}

/** The function that takes what an event tells. */
export const functionOf = (event: AbiEvent): AbiFunction => ({
  type: "function",
  name: event.name,
  inputs: event.inputs.map((input) => ({ ...input, indexed: false })),
  outputs: [],
  stateMutability: "nonpayable",
})

/** The input of a call with these arguments. */
export const encodeCall = (abi: AbiFunction, values: ReadonlyArray<unknown>): Hex =>
  encodeFunctionData({ abi: [abi], functionName: abi.name, args: values })

const asFieldValue = (value: unknown): unknown => {
  if (typeof value === "number") return BigInt(value)
  if (typeof value === "string") return /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : value
  if (Array.isArray(value)) return value.map(asFieldValue)
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asFieldValue(member)]))
  return value
}

/** Unnamed components by their places, as records have them. */
const named = (parameter: any, value: any): unknown => {
  const items = /^(.*)\[\d*\]$/.exec(parameter.type)
  if (items !== null) return value.map((item: unknown) => named({ ...parameter, type: items[1] }, item))
  if (parameter.type !== "tuple") return value
  return Object.fromEntries(
    parameter.components.map((member: any, i: number) => [
      member.name || `${i}`,
      named(member, Array.isArray(value) ? value[i] : value[member.name]),
    ]),
  )
}

const record = (inputs: ReadonlyArray<any>, args: any): unknown =>
  asFieldValue(
    Object.fromEntries(
      inputs.map((input, i) => {
        const value = Array.isArray(args) ? args[i] : args[input.name]
        return [input.name || `${i}`, input.indexed ? value : named(input, value)]
      }),
    ),
  )

/** The arguments as viem decodes them, as field values: integers as bigint, addresses in lower case. */
export const viemArguments = (event: AbiEvent, log: EncodedLog): unknown => {
  // viem knows events by their first topic only
  const { inputs, name } = event
  const known: AbiEvent = { type: "event", name, inputs }
  const topics = "anonymous" in event && event.anonymous === true ? [toEventSelector(event), ...log.topics] : log.topics
  return record(inputs, (decodeEventLog({ abi: [known], data: log.data, topics } as any) as any).args ?? {})
}

/** The same of a call. */
export const viemCallArguments = (abi: AbiFunction, data: Hex): unknown =>
  record(abi.inputs, decodeFunctionData({ abi: [abi], data }).args ?? [])
