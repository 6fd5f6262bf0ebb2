import { emissionsOf, groupOf, type Hit } from "./oracle.ts"
import { BLOCK_MS, type GateSetup, type MonitorSetup } from "./setup.ts"

/*
 * What a gate may make of hits of which some are found late: each is counted at its place among those that are not used up,
 * and what was told stays as it is. So what is told depends on when they were found; what must hold in any case is below.
 */

/** What is known of the hits of a monitor beside the chain. */
export interface Circumstances {
  /** Below this block none of these hits was ever found late, on any fork. */
  readonly lateFrom: (group: string) => number
  readonly mayBeLate: (hit: Hit) => boolean
  readonly mayBeMissing: (hit: Hit) => boolean
  /** Whether blocks of these numbers were taken back at some time: an emission that is cut gives its hits back, uncounted. */
  readonly wereTakenBack: (from: number, to: number) => boolean
}

const wordsOf = (hits: ReadonlyArray<Hit>): string =>
  hits.map(({ key, block, index }) => `${key} of ${block}:${index}`).join(", ")

const checkThresholds = (gate: GateSetup, emissions: ReadonlyArray<ReadonlyArray<Hit>>): ReadonlyArray<string> =>
  emissions.flatMap((hits) => {
    const times = hits.map(({ time }) => time)
    const isNear = Math.max(...times) - Math.min(...times) <= gate.windowMs
    const isOne = new Set(hits.map((hit) => groupOf(gate, hit))).size === 1
    return isNear && isOne && hits.length >= gate.count!
      ? []
      : [`not canonical: no emission of this gate is ${wordsOf(hits)}`]
  })

/** Of two hits in one window the first was found when the second was told. */
const checkFirsts = (gate: GateSetup, told: ReadonlyArray<Hit>, { mayBeLate }: Circumstances): ReadonlyArray<string> =>
  told.flatMap((hit, i) => {
    const second = told.slice(i + 1).find((other) => groupOf(gate, other) === groupOf(gate, hit))
    const isInWindow = second !== undefined && second.time < hit.time + gate.windowMs
    return isInWindow && !mayBeLate(hit)
      ? [`not canonical: ${wordsOf([second])} lies in the window of ${wordsOf([hit])}`]
      : []
  })

const untold = (
  { gate }: { readonly gate: GateSetup },
  hits: ReadonlyArray<Hit>,
  told: ReadonlyArray<Hit>,
  { mayBeMissing, wereTakenBack }: Circumstances,
): ReadonlyArray<Hit> => {
  const isTold = new Set(told.map(({ key }) => key))
  const left = hits.filter((hit) => !isTold.has(hit.key) && !mayBeMissing(hit))
  if (gate.type === "max_once")
    return left.filter(
      (hit) =>
        !told.some(
          (opener) =>
            groupOf(gate, opener) === groupOf(gate, hit) &&
            opener.time <= hit.time &&
            hit.time < opener.time + gate.windowMs,
        ),
    )
  const blocks = gate.windowMs / BLOCK_MS
  return emissionsOf({ gate }, left)
    .filter((emission) => !wereTakenBack(emission[0]!.block + 1, emission[0]!.block + 2 * blocks))
    .flat()
}

/** Where what a gate told, in groups that were told together, is not what it may have told. */
export const checkLateGate = (
  { gate, id }: MonitorSetup & { readonly gate: GateSetup },
  hits: ReadonlyArray<Hit>,
  emissions: ReadonlyArray<ReadonlyArray<Hit>>,
  circumstances: Circumstances,
): ReadonlyArray<string> => {
  const told = emissions.flat().toSorted((a, b) => a.block - b.block || a.index - b.index)
  const { lateFrom } = circumstances
  const isBefore = (emission: ReadonlyArray<Hit>) => emission.at(-1)!.block < lateFrom(groupOf(gate, emission[0]!))
  const keysOf = (all: ReadonlyArray<ReadonlyArray<Hit>>) =>
    all.filter(isBefore).map((emission) => emission.map(({ key }) => key).join(", "))
  const expected = new Set(keysOf(emissionsOf({ gate }, hits)))
  const early = keysOf(emissions)
  const isEarly = new Set(early)
  return [
    ...(gate.type === "threshold" ? checkThresholds(gate, emissions) : checkFirsts(gate, told, circumstances)),
    ...early.filter((keys) => !expected.has(keys)).map((keys) => `not canonical: told together, ${keys}`),
    ...[...expected].filter((keys) => !isEarly.has(keys)).map((keys) => `lost: ${keys}`),
    ...untold({ gate }, hits, told, circumstances).map((hit) => `lost: ${wordsOf([hit])} counts for nothing`),
  ].map((text) => `${id}: ${text}`)
}
