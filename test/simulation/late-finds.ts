import { Effect } from "effect"
import { checkLateGate } from "./late-gates.ts"
import type { Life } from "./life.ts"
import { groupOf, type Hit, hitsOf, keyOf } from "./oracle.ts"
import { CHANGING, type GateSetup, type MonitorSetup, NETWORK } from "./setup.ts"
import { waitAsItFalls } from "./waits.ts"
import type { World } from "./world.ts"

/**
 * The longest that a runtime may find nothing of what was left out while a node is well, in ms of the machine: for half of
 * it a node that was wrong may still be left aside.
 */
const FIND_MS = 12_000

/** The same for a runtime that breaks a rule: what it is to show does not come. */
const BROKEN_FIND_MS = 3_000

/** Blocks this close to the head are not compared with their receipts yet. */
export const AUDIT_LAG = 3

/** What a runtime shows of its matches, where what its gates let through depends on when hits were found. */
export interface Learned {
  readonly keys: ReadonlySet<string>
  /** What each monitor that has a gate told, in groups that it told together. */
  readonly emissions: ReadonlyMap<string, ReadonlyArray<ReadonlyArray<Hit>>>
}

interface Item {
  readonly monitor: string
  readonly key: string
  readonly hash: string
  readonly index: number
  /** Tells it apart from what was told by itself or with others. */
  readonly emission: string
  readonly late: boolean
}

const readItems = Effect.fnUntraced(function* ({ storage }: Life) {
  const items: Array<Item> = []
  for (let after = 0; ;) {
    const page = yield* storage!.feedPage({ network: NETWORK, kinds: ["match"], standing: true, after, limit: 1000 })
    for (const item of page) {
      if (item.kind !== "match") continue
      const { event } = JSON.parse(item.payload)
      const [hash, { index }] = [event.block.hash, event.log]
      const key = keyOf(item.monitor, hash, index)
      items.push({ monitor: item.monitor, key, hash, index, emission: item.emission ?? key, late: item.late })
    }
    if (page.length < 1000) return items
    after = page.at(-1)!.position
  }
})

const isGated = (monitor: MonitorSetup): monitor is MonitorSetup & { readonly gate: GateSetup } => monitor.gate !== null

const canonicalHits = ({ chain }: World, monitor: MonitorSetup): ReadonlyArray<Hit> =>
  hitsOf(monitor, chain.canonicalLogs(1), (block) => chain.at(block)!.timestamp * 1000)

/** Below which block no hit of a group was ever found late. */
const lateFrom = ({ chain, providers }: World, monitor: MonitorSetup & { readonly gate: GateSetup }) => {
  const leftOut = providers?.leftOut ?? []
  // Any creation that comes late may bring hits of any group.
  if (monitor.tokens === "children") {
    const first = Math.min(...leftOut.map(({ block }) => block))
    return () => first
  }
  const late = hitsOf(monitor, leftOut, (block) => chain.at(block)?.timestamp ?? 0)
  const firsts = new Map<string, number>()
  for (const hit of late) {
    const group = groupOf(monitor.gate, hit)
    firsts.set(group, Math.min(hit.block, firsts.get(group) ?? Infinity))
  }
  return (group: string) => firsts.get(group) ?? Infinity
}

const placeOf = ({ key, block, index }: Hit) => ({ block, index, hash: key.split(" ")[1]! })

const emissionsOfGate = (
  world: World,
  monitor: MonitorSetup & { readonly gate: GateSetup },
  items: ReadonlyArray<Item>,
): ReadonlyArray<ReadonlyArray<Hit>> => {
  const hits = canonicalHits(world, monitor)
  const byKey = new Map(hits.map((hit) => [hit.key, hit]))
  const told = Map.groupBy(
    items.filter((item) => item.monitor === monitor.id),
    ({ emission }) => emission,
  )
  const emissions: Array<ReadonlyArray<Hit>> = []
  for (const members of told.values()) {
    const known = members.flatMap(({ key }) => byKey.get(key) ?? [])
    if (known.length === members.length)
      emissions.push(known.toSorted((a, b) => a.block - b.block || a.index - b.index))
    else world.violation(`not canonical: the feed shows ${members.map(({ key }) => key).join(", ")}`)
  }
  const wrong = checkLateGate(monitor, hits, emissions, {
    lateFrom: lateFrom(world, monitor),
    mayBeLate: (hit) => world.mayBeLate(placeOf(hit)),
    mayBeMissing: (hit) => world.mayBeMissing(placeOf(hit)),
    wereTakenBack: (from, to) => world.wereTakenBack(from, to),
  })
  for (const text of wrong) world.violation(text)
  return emissions
}

/** Learns what a runtime shows, and checks what only that can tell. */
export const learn = Effect.fnUntraced(function* (world: World, life: Life) {
  if (!world.hasLateFinds) return
  const items = yield* readItems(life)
  for (const { monitor, key, hash, index, late } of items) {
    const isPlain = monitor !== CHANGING.id && !world.gated.has(monitor)
    if (late && isPlain && !world.mayBeLate({ block: 0, hash, index }))
      world.violation(`${key} is told late, although no node left it out`)
  }
  world.learned = {
    keys: new Set(items.map(({ key }) => key)),
    emissions: new Map(
      world.monitors.filter(isGated).map((monitor) => [monitor.id, emissionsOfGate(world, monitor, items)]),
    ),
  }
}, Effect.orDie)

/** Waits until what nodes left out is found; what is not is wrong. */
export const findLate = Effect.fnUntraced(function* (world: World, life: Life) {
  if (!world.hasLateFinds) return
  const due = world.monitors
    .filter((monitor) => !isGated(monitor))
    .flatMap((monitor) => canonicalHits(world, monitor))
    .filter((hit) => hit.block <= world.chain.head.number - AUDIT_LAG)
    .filter((hit) => world.mayBeLate(placeOf(hit)) && !world.mayBeMissing(placeOf(hit)))
  let left = due
  const areFound = Effect.map(readItems(life), (items) => {
    const keys = new Set(items.map(({ key }) => key))
    left = due.filter(({ key }) => !keys.has(key))
    return left.length === 0
  })
  yield* waitAsItFalls(
    Effect.orElseSucceed(areFound, () => false),
    () => left.length,
    world.mutant === null ? FIND_MS : BROKEN_FIND_MS,
  )
  world.log(`${due.length} matches may have been found late`)
  for (const { key, block } of left) world.violation(`lost: ${key} of block ${block}, which a node left out`)
})
