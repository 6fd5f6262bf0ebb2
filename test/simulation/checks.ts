import { Effect } from "effect"
import type { Life } from "./life.ts"
import { emissionsOf, type Hit, hitsOf } from "./oracle.ts"
import type { Held, Receiver } from "./receivers.ts"
import type { Learned } from "./late-finds.ts"
import { CHANGING, NETWORK } from "./setup.ts"
import type { World } from "./world.ts"

const timeOf =
  ({ chain }: World) =>
  (block: number) =>
    chain.at(block)!.timestamp * 1000

type Emissions = ReadonlyArray<ReadonlyArray<Hit>>

const computed = new WeakMap<
  World,
  { readonly head: string; readonly learned: Learned | null; readonly emissions: ReadonlyMap<string, Emissions> }
>()

/** What each monitor that stays as it is tells of the chain as it is now. */
const emissionsNow = (world: World): ReadonlyMap<string, Emissions> => {
  const head = world.chain.head.hash
  const { learned } = world
  const known = computed.get(world)
  if (known?.head === head && known.learned === learned) return known.emissions
  const logs = world.chain.canonicalLogs(1)
  const emissions = new Map(
    world.monitors.map((monitor) => {
      const inTime = () =>
        emissionsOf(
          monitor,
          hitsOf(monitor, logs, timeOf(world)).filter((hit) => !isMissing(world, hit)),
        )
      return [monitor.id, learned?.emissions.get(monitor.id) ?? inTime()]
    }),
  )
  computed.set(world, { head, learned, emissions })
  return emissions
}

/** Whether a hit was never found, and need not be. */
const isMissing = (world: World, { key, block, index }: Hit): boolean => {
  if (world.learned === null || world.learned.keys.has(key)) return false
  return world.mayBeMissing({ block, index, hash: key.split(" ")[1]! })
}

/** What is due to a sink by the monitors that stay as they are: groups of hits that are told together. */
export const dueTo = (world: World, sink: string): Emissions =>
  world.monitors.filter(({ sinks }) => sinks.includes(sink)).flatMap(({ id }) => emissionsNow(world).get(id)!)

/** Whoever holds matches, by their ids. */
interface Holder {
  readonly setup: { readonly id: string }
  readonly held: ReadonlyMap<string, Pick<Held, "key" | "value">>
}

const heldByKey = ({ held }: Holder, violation: (text: string) => void) => {
  const byKey = new Map<string, { readonly id: string; readonly value: string }>()
  for (const [id, { key, value }] of held) {
    if (byKey.has(key)) violation(`two ids for ${key}: ${byKey.get(key)!.id} and ${id}`)
    byKey.set(key, { id, value })
  }
  return byKey
}

/** Where what a sink holds differs from what it must. */
export const checkHeld = (
  world: World,
  receiver: Holder,
  excused: { readonly missing: (hit: Hit) => boolean; readonly phantom: (match: string) => boolean },
): void => {
  const violation = (text: string) => world.violation(`${receiver.setup.id}: ${text}`)
  const held = heldByKey(receiver, violation)
  for (const hit of dueTo(world, receiver.setup.id).flat()) {
    const found = held.get(hit.key)
    held.delete(hit.key)
    if (found === undefined && !excused.missing(hit)) violation(`lost: ${hit.key} of block ${hit.block}:${hit.index}`)
    if (found !== undefined && BigInt(found.value) !== hit.value) violation(`${hit.key} has the value ${found.value}`)
  }
  for (const [key, { id }] of held) if (!excused.phantom(id)) violation(`not canonical: ${id}, ${key}`)
}

/** Whether hits that a gate told together came together, where nothing takes digests apart. */
export const checkTogether = (world: World, receiver: Receiver): void => {
  const { id, splits } = receiver.setup
  if (splits) return
  const told = new Map<string, { readonly match: string; readonly together: ReadonlyArray<string> }>()
  for (const [match, { key, together }] of receiver.held) told.set(key, { match, together })
  for (const emission of dueTo(world, id)) {
    if (!world.gated.has(emission[0]!.monitor)) continue
    const keys = emission.map(({ key }) => key)
    for (const key of keys) {
      const found = told.get(key)
      if (found === undefined || world.isLetter(id, found.match)) continue
      if (found.together.join() !== keys.join()) {
        world.violation(`${id}: ${key} came with ${found.together.join(", ")}, not with ${keys.join(", ")}`)
      }
    }
  }
}

/** What the feed shows is what is due to whoever listens to everything. */
export const checkFeed = (world: World, life: Life) =>
  Effect.gen(function* () {
    const shown = new Set<string>()
    for (let after: string | null = null; ;) {
      const page: { readonly items: ReadonlyArray<any>; readonly hasNextPage: boolean; readonly endCursor: string } =
        yield* life.parts!.feed.matches({ network: NETWORK, first: 1000, after })
      for (const { match } of page.items) {
        if (match.monitor === CHANGING.id) continue
        const key = `${match.monitor} ${match.event.block.hash} ${match.event.log.index}`
        if (shown.has(key)) world.violation(`the feed shows ${key} twice`)
        shown.add(key)
      }
      if (!page.hasNextPage) break
      after = page.endCursor
    }
    for (const { key, block } of [...emissionsNow(world).values()].flat(2))
      if (!shown.delete(key)) world.violation(`the feed does not show ${key} of ${block}`)
    for (const key of shown) world.violation(`the feed shows ${key}, which is not canonical`)
  }).pipe(Effect.catch((error) => Effect.sync(() => world.violation(`the feed cannot be read: ${error.message}`))))

/** What is known of the monitor that changed: nothing phantom, and nothing lost behind where it took effect. */
export const checkChanging = (
  world: World,
  receiver: Receiver,
  versions: ReadonlyArray<number>,
  present: {
    readonly above: number
    readonly effectiveFrom: { readonly primary: number; readonly secondary: number } | null
  },
): void => {
  const violation = (text: string) => world.violation(`${receiver.setup.id}: ${text}`)
  const held = heldByKey(receiver, violation)
  const logs = world.chain.canonicalLogs(1)
  const least = Math.min(...versions)
  const possible = new Set(hitsOf({ ...CHANGING, above: least }, logs, timeOf(world)).map(({ key }) => key))
  for (const [key, { id }] of held) if (!possible.has(key)) violation(`not canonical: ${id}, ${key}`)
  const { effectiveFrom, above } = present
  if (effectiveFrom === null) return
  for (const hit of hitsOf({ ...CHANGING, above }, logs, timeOf(world))) {
    const { key, block, index } = hit
    const isBehind =
      block > effectiveFrom.primary || (block === effectiveFrom.primary && 2 ** 20 + index > effectiveFrom.secondary)
    if (isBehind && !held.has(key) && !isMissing(world, hit)) {
      violation(`lost: ${key} of block ${block}:${index}, behind ${JSON.stringify(effectiveFrom)}`)
    }
  }
}
