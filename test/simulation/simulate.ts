import { fork } from "node:child_process"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { MUTANTS } from "./mutants.ts"
import { runSeed } from "./run-seed.ts"

/*
 * node test/simulation/simulate.ts --seeds N [--from K]   plays N seeds on all cores, and tells which failed
 * node test/simulation/simulate.ts --seed K               plays one, with a trace
 *
 * --mutant I breaks the rule of that mutant; --workers W takes so many processes.
 */

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    mutant: { type: "string" },
    workers: { type: "string" },
  },
})

const options = values.mutant === undefined ? {} : { mutant: MUTANTS[Number(values.mutant)]! }

interface Played {
  readonly seed: number
  readonly ms: number
  readonly violations: ReadonlyArray<string>
}

const play = async (seed: number, trace?: (text: string) => void): Promise<Played> => {
  const startedAt = performance.now()
  const violations = await runSeed(seed, trace === undefined ? options : { ...options, trace })
  return { seed, ms: Math.round(performance.now() - startedAt), violations }
}

/** Plays the seeds that come from the parent. */
const work = (): void => {
  process.on("message", (seed: number) => void play(seed).then((played) => process.send!(played)))
}

const tell = ({ seed, ms, violations }: Played): void => {
  if (violations.length === 0) return
  console.log(`seed ${seed} failed (${ms} ms): ${violations.length} violations`)
  for (const violation of violations.slice(0, 5)) console.log(`  ${violation}`)
  if (violations.length > 5) console.log("  …")
}

const playAll = async (): Promise<void> => {
  const startedAt = performance.now()
  const [from, count] = [Number(values.from), Number(values.seeds)]
  let next = from
  const failed: Array<number> = []
  let played = 0
  const workers = Number(values.workers ?? availableParallelism() + 1)
  await Promise.all(
    Array.from({ length: Math.min(workers, count) }, async () => {
      const child = fork(import.meta.filename, process.argv.slice(2), {
        // Most of what a seed needs it needs for a moment: with more room there is less to clear away.
        execArgv: ["--max-semi-space-size=64"],
        env: { ...process.env, SIMULATION_WORKER: "1" },
      })
      const ended = Promise.withResolvers<void>()
      const takeNext = () => (next < from + count ? child.send(next++) : child.disconnect())
      child.on("message", (message) => {
        const one = message as Played
        played++
        if (one.violations.length > 0) failed.push(one.seed)
        tell(one)
        takeNext()
      })
      child.once("exit", ended.resolve)
      takeNext()
      await ended.promise
    }),
  )
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(
    `${played} of ${count} seeds played in ${seconds} s, ${failed.length} failed: ${failed.toSorted((a, b) => a - b).join(" ")}`,
  )
  process.exitCode = failed.length > 0 || played < count ? 1 : 0
}

if (process.env["SIMULATION_WORKER"] !== undefined) work()
else if (values.seed === undefined) await playAll()
else {
  const played = await play(Number(values.seed), (text) => console.log(text))
  tell(played)
  process.exitCode = played.violations.length > 0 ? 1 : 0
}
