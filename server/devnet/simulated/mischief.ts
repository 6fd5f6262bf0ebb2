import type { FaultKind } from "./catalog.ts"
import type { NodeFault } from "./fault.ts"
import type { SimulatedNode } from "./node.ts"
import type { Random } from "./random.ts"

export interface MischiefOptions {
  readonly random: Random
  readonly kinds: ReadonlyArray<FaultKind>
  /** Nodes that may be wrong at a time. */
  readonly most: number
  /** Steps that a fault lasts, at least and at most. */
  readonly lasts: readonly [least: number, most: number]
}

/** A fault that began or ended at a node. */
export interface Change {
  readonly node: SimulatedNode
  readonly fault: NodeFault
  readonly began: boolean
}

interface Active {
  readonly node: SimulatedNode
  readonly kind: FaultKind
  readonly fault: NodeFault
  readonly until: number
}

/** The chance, in each step in which one more node may be wrong, that one gets a fault. */
const CHANCE = 0.25

/** Gives nodes faults for a while, one each, and never the same kind to two at a time. A seed decides all of it. */
export class Mischief {
  readonly #nodes: ReadonlyArray<SimulatedNode>
  readonly #options: MischiefOptions
  #active: ReadonlyArray<Active> = []
  #step = 0

  constructor(nodes: ReadonlyArray<SimulatedNode>, options: MischiefOptions) {
    this.#nodes = nodes
    this.#options = options
  }

  /** What is wrong now. */
  get active(): ReadonlyArray<Pick<Active, "node" | "fault">> {
    return this.#active
  }

  /** Ends what has lasted long enough, and may begin something. */
  step(): ReadonlyArray<Change> {
    const { random, kinds, most, lasts } = this.#options
    this.#step++
    const changes = this.#end(this.#active.filter(({ until }) => until <= this.#step))
    if (this.#active.length >= most || !random.chance(CHANCE)) return changes
    const well = this.#nodes.filter((node) => this.#active.every((active) => active.node !== node))
    const unused = kinds.filter((kind) => this.#active.every((active) => active.kind !== kind))
    if (well.length === 0 || unused.length === 0) return changes
    const [node, kind] = [random.pick(well), random.pick(unused)]
    const fault = kind.make(random)
    this.#active = [...this.#active, { node, kind, fault, until: this.#step + random.between(...lasts) }]
    node.misbehave(fault)
    return [...changes, { node, fault, began: true }]
  }

  /** Ends everything. */
  heal(): ReadonlyArray<Change> {
    return this.#end(this.#active)
  }

  #end(over: ReadonlyArray<Active>): ReadonlyArray<Change> {
    this.#active = this.#active.filter((active) => !over.includes(active))
    for (const { node, fault } of over) node.faults.delete(fault)
    return over.map(({ node, fault }) => ({ node, fault, began: false }))
  }
}
