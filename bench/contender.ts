import { readFileSync } from "node:fs"

/** What one run of a contender measured. */
export interface Measured {
  readonly logs: number
  readonly ms: number
  /** CPU time of the process over the same stretch, all threads, in ms. */
  readonly cpuMs: number
}

/** The result of a contender's process. */
export type Reported<A> = A & {
  /** The largest resident set that the process ever had, in bytes. */
  readonly peakRss: number
}

const statusBytes = (field: string): number => {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1]
  return Number(kib) * 1024
}

/** The resident set at present, in bytes. */
export const residentBytes = (): number => statusBytes("VmRSS")

/** Starts a clock; answers the reader of what passed since. */
export const startClock = (): ((logs: number) => Measured) => {
  const started = performance.now()
  const cpu = process.cpuUsage()
  return (logs) => {
    const ms = performance.now() - started
    const { user, system } = process.cpuUsage(cpu)
    return { logs, ms, cpuMs: (user + system) / 1000 }
  }
}

/** Runs a contender with the task that its process was given, and reports to the parent, or prints without one. */
export const contend = async <Task, A extends object>(run: (task: Task) => Promise<A>): Promise<void> => {
  const result: Reported<A> = {
    ...(await run(JSON.parse(process.argv[2] ?? "{}") as Task)),
    peakRss: statusBytes("VmHWM"),
  }
  if (process.send === undefined) console.log(JSON.stringify(result, null, 2))
  else process.send(result, () => process.exit(0))
}
