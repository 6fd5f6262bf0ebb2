import type { LiveRun } from "./contenders/live.ts"
import { atMost, row } from "./report.ts"

/** Bounds in ms: above the node's own notification with a WebSocket, and above the poll interval without. */
const MEDIAN_MS = 20
const WORST_MS = 150
/** HTTP requests for a new block beside one poll each interval. */
const REQUESTS = 2

const quantile = (times: ReadonlyArray<number>, part: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))]!

const timesRow = (name: string, times: ReadonlyArray<number>): string =>
  row(name, quantile(times, 0.5).toFixed(1), quantile(times, 0.99).toFixed(1))

const requestRow = (name: string, { stats, delivered, tookMs }: LiveRun, pollMs: number): string => {
  const blocks = delivered.length
  const each = (stats.http - tookMs / pollMs) / blocks
  const calls = Object.entries(stats.calls).map(([method, count]) => `${method} ${(count / blocks).toFixed(2)}`)
  return `${row(name, (stats.http / blocks).toFixed(2), Math.max(0, each).toFixed(2))}   ${atMost(each, REQUESTS)}   ${calls.join(", ")}`
}

/** Renders how long a block's match takes to the webhook, and the requests for it, with a WebSocket and without. */
export const reportLive = (announced: LiveRun, polled: LiveRun, pollMs: number): string => {
  const above = announced.delivered.map((ms, i) => ms - announced.notified[i]!)
  return [
    "",
    row("11  ms from a block to its delivery", "median", "99 %"),
    timesRow("    the node's own notification", announced.notified),
    timesRow("    with ws_url", announced.delivered),
    `${timesRow("    above the notification", above)}   ${atMost(quantile(above, 0.5), MEDIAN_MS)}, ${atMost(quantile(above, 0.99), WORST_MS)}`,
    `${timesRow("    without", polled.delivered)}   99 % ${atMost(quantile(polled.delivered, 0.99), pollMs + WORST_MS)}`,
    "",
    `${row("12  HTTP requests for a new block", "all", "but a poll")}   calls by method`,
    requestRow("    with ws_url", announced, pollMs),
    requestRow("    without", polled, pollMs),
  ].join("\n")
}
