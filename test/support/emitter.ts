import type { Hex } from "viem"
import type { EmittedLog } from "./anvil.ts"

/*
 * A contract that writes one log. Its input is five words, the count of topics and four topics, then the data.
 */

const op = {
  EQ: "14",
  CALLDATALOAD: "35",
  CALLDATASIZE: "36",
  CALLDATACOPY: "37",
  CODECOPY: "39",
  JUMPI: "57",
  JUMPDEST: "5b",
  SUB: "03",
  STOP: "00",
  RETURN: "f3",
} as const

const byte = (value: number): string => value.toString(16).padStart(2, "0")
const push = (value: number): string => `60${byte(value)}`

const HEAD = 5 * 32

/** Copies the data to memory 0. */
const copyData = push(HEAD) + op.CALLDATASIZE + op.SUB + push(HEAD) + push(0) + op.CALLDATACOPY

/** Pushes the topics, the size and the offset, and writes the log. */
const writeLog = (topics: number): string => {
  let code = ""
  for (let topic = topics; topic >= 1; topic--) code += push(32 * topic) + op.CALLDATALOAD
  return `${code}${push(HEAD)}${op.CALLDATASIZE}${op.SUB}${push(0)}${byte(0xa0 + topics)}${op.STOP}`
}

const BRANCHES = [0, 1, 2, 3, 4].map(writeLog)

/** Jumps to the branch of the count of topics. */
const runtime = (() => {
  const jumpSize = (push(0) + push(0) + op.CALLDATALOAD + op.EQ + push(0) + op.JUMPI).length / 2
  let target = copyData.length / 2 + jumpSize * BRANCHES.length + 1
  let jumps = ""
  let branches = ""
  for (const [topics, branch] of BRANCHES.entries()) {
    jumps += push(topics) + push(0) + op.CALLDATALOAD + op.EQ + push(target) + op.JUMPI
    branches += op.JUMPDEST + branch
    target += 1 + branch.length / 2
  }
  return copyData + jumps + op.STOP + branches
})()

/** Deploys `runtime`. */
const deploy = (() => {
  const size = runtime.length / 2
  const build = (offset: number) => push(size) + push(offset) + push(0) + op.CODECOPY + push(size) + push(0) + op.RETURN
  return build(build(0).length / 2) + runtime
})()

/** The code that deploys the contract. */
export const EMITTER_BYTECODE: Hex = `0x${deploy}`

/** The input that makes the contract write the log. */
export const emitterCall = ({ topics, data }: EmittedLog): Hex => {
  const words = [0, 1, 2, 3].map((i) => (topics[i] ?? `0x${"0".repeat(64)}`).slice(2))
  return `0x${byte(topics.length).padStart(64, "0")}${words.join("")}${data.slice(2)}`
}
