import type { Received } from "../support/receiver.ts"

/** A match that a sink must have heard of, named by what the node tells. */
export interface Expected {
  readonly monitor: string
  readonly block: number
  readonly hash: string
  readonly index: number
}

interface Delivery {
  readonly key: string
  readonly id: string
  readonly webhookId: string
  readonly bytes: string
}

const keyOf = (monitor: string, hash: string, index: number): string => `${monitor} ${hash} ${index}`

const readDelivery = ({ headers, body }: Received): Delivery => {
  const { id, monitor, event } = JSON.parse(body.toString())
  return {
    key: keyOf(monitor, event.block.hash, event.log.index),
    id,
    webhookId: headers["webhook-id"] ?? "none",
    bytes: body.toString(),
  }
}

/**
 * Everything that is wrong with what one sink received: matches that are missing or invented, repetitions that are not
 * the same delivery to the byte, and first receipts that are not in the chain's order.
 */
export const faultsOf = (
  received: ReadonlyArray<Received>,
  expected: ReadonlyArray<Expected>,
): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const due = new Map(expected.map((match) => [keyOf(match.monitor, match.hash, match.index), match]))
  const first = new Map<string, Delivery>()
  let newest: Expected | undefined
  for (const delivery of received.map(readDelivery)) {
    const match = due.get(delivery.key)
    if (match === undefined) {
      faults.push(`invented: ${delivery.key}`)
      continue
    }
    if (delivery.webhookId !== delivery.id) faults.push(`${delivery.id} came with the webhook-id ${delivery.webhookId}`)
    const before = first.get(delivery.key)
    if (before !== undefined) {
      if (before.id !== delivery.id) faults.push(`two ids for ${delivery.key}: ${before.id} and ${delivery.id}`)
      if (before.bytes !== delivery.bytes) faults.push(`other bytes for ${delivery.id}`)
      continue
    }
    first.set(delivery.key, delivery)
    if (newest !== undefined && (newest.block - match.block || newest.index - match.index) > 0) {
      faults.push(`out of order: ${match.block}/${match.index} came behind ${newest.block}/${newest.index}`)
    }
    newest = match
  }
  for (const [key, { block }] of due) if (!first.has(key)) faults.push(`lost: ${key} of block ${block}`)
  if (new Set([...first.values()].map(({ id }) => id)).size < first.size) faults.push("two matches have one id")
  return faults
}
