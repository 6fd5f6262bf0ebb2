import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"

/**
 * A name for this runtime as the holder of leases: host, boot, process namespace, process id, start time of the process
 * (in clock ticks since boot, from /proc), and a number of its own. Boot, namespace, id and start time tell a process
 * apart from every other one (proc_pid_stat(5), namespaces(7)), so that others on the machine can see that it has ended.
 */
export const makeHolder = (): string =>
  [hostname(), boot() ?? "", namespace() ?? "", process.pid, startOf(process.pid) ?? "", crypto.randomUUID()].join(" ")

/** Whether the process of this holder has ended: only if it ran on this machine, where that can be seen. */
export const isGone = (holder: string): boolean => {
  const [, theirBoot, theirNamespace, pid, start] = holder.split(" ")
  if (theirBoot === undefined || theirNamespace === undefined || pid === undefined || start === undefined) return false
  if (theirBoot === "" || start === "" || theirBoot !== boot() || theirNamespace !== namespace()) return false
  const started = startOf(Number(pid))
  return started === null ? !isAlive(Number(pid)) : started !== start
}

/** The holder in words. */
export const describeHolder = (holder: string): string => {
  const [host, , , pid] = holder.split(" ")
  return pid === undefined ? holder : `process ${pid} on ${host}`
}

const read = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // No such process, or no such system.
    return null
  }
}

const boot = (): string | null => read("/proc/sys/kernel/random/boot_id")?.trim() ?? null

const namespace = (): string | null => {
  try {
    return readlinkSync("/proc/self/ns/pid")
  } catch {
    return null
  }
}

/** Whether there is a process of this id: where /proc hides those of other users, a signal still finds them. */
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (cause) {
    return !(cause instanceof Error && "code" in cause && cause.code === "ESRCH")
  }
}

/** When a process started, or an empty text if it only waits to be buried (a zombie); null if that cannot be read. */
const startOf = (pid: number): string | null => {
  const stat = read(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The name of the program, in parentheses, may hold anything; the state is the field behind it, the start time the
  // twentieth from there.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields[0] === "Z" || fields[0] === "X" ? "" : (fields[19] ?? null)
}
