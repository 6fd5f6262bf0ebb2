import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { describeHolder, isGone, makeHolder } from "../../../core/storage/holder.ts"

const MODULE = join(import.meta.dirname, "../../../core/storage/holder.ts")

/** Tells the name of the process that it runs in, and then waits for the end of its input. */
const tellAndWait = `
  const { makeHolder } = await import(${JSON.stringify(MODULE)})
  console.log(makeHolder())
  for await (const _ of process.stdin) {}`

const tellAndEnd = `const { makeHolder } = await import(${JSON.stringify(MODULE)}); console.log(makeHolder())`

const start = async (command: string, args: ReadonlyArray<string>) => {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] })
  const [holder] = (await once(createInterface({ input: child.stdout }), "line")) as [string]
  const kill = async () => {
    const exited = once(child, "exit")
    child.kill("SIGKILL")
    await exited
  }
  return { child, holder, kill }
}

const stateOf = (pid: string): string => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]!

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** The holder with another word in one place. */
const withWord = (holder: string, place: number, word: string): string => holder.split(" ").with(place, word).join(" ")

/** A holder whose process there is not. */
const absent = withWord(makeHolder(), 3, "999999999")

describe("the holder of a lease", () => {
  it("has a name that no other has, also in the same process", () => {
    assert.notEqual(makeHolder(), makeHolder())
    assert.strictEqual(makeHolder().split(" ").length, 6)
  })

  it("is gone once its process was killed, and not before, also while it is stopped", async () => {
    const { child, holder, kill } = await start(process.execPath, ["--input-type=module", "-e", tellAndWait])
    assert.isFalse(isGone(holder))
    child.kill("SIGSTOP")
    await until(() => stateOf(`${child.pid}`) === "T")
    assert.isFalse(isGone(holder))
    await kill()
    assert.isTrue(isGone(holder))
  })

  it("is gone once its process has ended that nobody has buried", async () => {
    // The shell becomes a program that never asks for the end of its child.
    const script = '"$0" --input-type=module -e "$1" & exec sleep 60'
    const { holder, kill } = await start("/bin/sh", ["-c", script, process.execPath, tellAndEnd])
    const pid = holder.split(" ")[3]!
    await until(() => stateOf(pid) === "Z")
    assert.isTrue(isGone(holder))
    await kill()
  })

  it("is gone when its process id has gone to another process", () => {
    assert.isFalse(isGone(makeHolder()))
    assert.isTrue(isGone(withWord(makeHolder(), 4, "1")))
    assert.isTrue(isGone(absent))
  })

  it.each([
    ["on another machine, or before it was started anew", withWord(absent, 1, "another-boot")],
    ["in another container", withWord(absent, 2, "pid:[1]")],
    ["where no boot is known", withWord(absent, 1, "")],
    ["where no start time is known", withWord(absent, 4, "")],
    ["of which nothing is known", "somebody"],
    ["without a name", ""],
  ])("is not known to be gone %s", (_, holder) => {
    assert.isFalse(isGone(holder))
  })

  it("is told by its process and host", () => {
    const [host] = makeHolder().split(" ")
    assert.strictEqual(describeHolder(makeHolder()), `process ${process.pid} on ${host}`)
    assert.strictEqual(describeHolder("somebody"), "somebody")
  })
})
