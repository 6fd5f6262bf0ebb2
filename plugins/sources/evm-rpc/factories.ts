import { type Cursor, endOf, isAfter } from "../../../core/model/cursor.ts"
import type { RecordId, SourceRecord } from "../../../core/plugin/source.ts"
import { cursorOfLog, isBefore, type LogPosition, positionOf } from "./log-position.ts"
import type { WatchedFactory } from "./selectors/factory.ts"

/** A contract that a factory made, and where the log is that tells it. */
export interface Child extends LogPosition {
  readonly address: string
  /**
   * The place of the log's transaction in its block; null if it has none, or if an earlier run read the log: that run handed
   * over the transactions of its block, too, for their cursors are lower.
   */
  readonly transaction: number | null
}

/** A child with the factory that made it. */
export interface Birth extends Child {
  readonly by: Children
}

/** Whether a transaction is that of a birth, or comes behind it. Where that of the birth is not known it counts as the first. */
export const isBornBy = (birth: Child, block: number, transaction: number): boolean =>
  birth.block < block || (birth.block === block && (birth.transaction ?? 0) <= transaction)

/** The contracts by address, each with the factories that made it. */
export type Births = ReadonlyMap<string, ReadonlyArray<Birth>>

/** What is known of the contracts that one factory made. */
export class Children {
  readonly key: string
  /** Those of all factories. */
  readonly births: Births
  /** In the order in which they were made. */
  readonly list: Array<Child> = []
  /** Counts what changes the list. */
  changes = 0
  /** Whether all are known up to where the run stands, and whatever is read from there on tells the others. */
  followed = false
  /** Until then: the last block of the past that was read. */
  scanned: number | null = null

  constructor(key: string, births: Births) {
    this.key = key
    this.births = births
  }
}

/** Values of records beside the children's addresses. */
const FOLLOWED = "followed"
const SCANNED = "scanned"

/** Records that are written or forgotten with one batch. */
const AT_ONCE = 1000

/**
 * What a run knows of factories. A factory is followed from when all of its past is read, which a record says; what is
 * found of one that no interest names is forgotten, that record first.
 */
export class Factories {
  readonly #known = new Map<string, Children>()
  readonly #births = new Map<string, ReadonlyArray<Birth>>()
  #used: ReadonlyMap<string, WatchedFactory> = new Map()
  #records: Array<SourceRecord> = []
  #forget: Array<RecordId> = []

  /** @param records what earlier runs recorded */
  constructor(records: ReadonlyArray<SourceRecord> = []) {
    for (const { key, value, cursor } of records) {
      const children = this.#of(key)
      if (value === FOLLOWED) children.followed = true
      else if (value === SCANNED) children.scanned = cursor.primary
      else this.#insert(children, { address: value, transaction: null, ...positionOf(cursor) })
    }
  }

  /** Takes up the factories that the interests of a version name; others are not followed any more. */
  use(factories: Iterable<WatchedFactory>): void {
    const used = new Map<string, WatchedFactory>()
    for (const factory of factories) {
      this.#of(factory.key)
      used.set(factory.key, factory)
    }
    this.#used = used
    for (const [key, children] of this.#known) {
      if (used.has(key)) continue
      this.#records = this.#records.filter((record) => record.key !== key)
      if (children.followed) this.#forget.push({ key, value: FOLLOWED })
      if (children.scanned !== null) this.#forget.push({ key, value: SCANNED })
      children.followed = false
      children.scanned = null
    }
  }

  /** The children of a factory in use. */
  of({ key }: WatchedFactory): Children {
    return this.#known.get(key)!
  }

  /** The factories in use whose past is not known. */
  get unknown(): ReadonlyArray<WatchedFactory> {
    return [...this.#used.values()].filter((factory) => !this.of(factory).followed)
  }

  /** Adds a child, or learns that one was made earlier than was known; false if there is nothing new. */
  add(children: Children, child: Child): boolean {
    const known = this.#births.get(child.address)?.find(({ by }) => by === children)
    if (known !== undefined) {
      if (!isBefore(child, known)) return false
      this.#remove(children, child.address)
    }
    this.#insert(children, child)
    return true
  }

  /** The same for a child that is found in the past, to be recorded with the next batch. */
  addPast(children: Children, child: Child): boolean {
    const isNew = this.add(children, child)
    if (isNew) this.#records.push(recordOf(children, child))
    return isNew
  }

  /** Says that the past was read up to and with a block. */
  scannedTo(children: Children, block: number): void {
    children.scanned = block
    this.#records = this.#records.filter(({ key, value }) => key !== children.key || value !== SCANNED)
    this.#records.push({ key: children.key, value: SCANNED, cursor: endOf(block) })
  }

  /**
   * Follows a factory from where the run stands on: all that it made is known.
   *
   * @param since what is taken back behind it leaves known what was made before
   */
  follow(children: Children, since: Cursor): void {
    const { key } = children
    this.#records = this.#records.filter((record) => record.key !== key || record.value !== SCANNED)
    if (children.scanned !== null) this.#forget.push({ key, value: SCANNED })
    this.#records.push({ key, value: FOLLOWED, cursor: since })
    children.followed = true
    children.scanned = null
  }

  /** Drops what was found behind a position, in pieces that were not handed over. */
  forgetBehind(cursor: Cursor): void {
    for (const children of this.#known.values()) {
      while (children.list.length > 0 && isAfter(cursorOfLog(children.list.at(-1)!), cursor)) this.#pop(children)
    }
  }

  /** Whether there is more to be recorded than one batch should hold. */
  get isMuch(): boolean {
    return this.#records.length > AT_ONCE
  }

  /** What is to be written with the next batch: all that is to be recorded, or as much as one batch should hold. */
  drain(how: "all" | "some"): {
    readonly records: ReadonlyArray<SourceRecord>
    readonly forget: ReadonlyArray<RecordId>
  } {
    const records = this.#records.splice(0, how === "all" ? this.#records.length : AT_ONCE)
    const forget = this.#forget.splice(0)
    for (const [key, children] of this.#known) {
      if (this.#used.has(key)) continue
      while (children.list.length > 0 && forget.length < AT_ONCE) forget.push({ key, value: this.#pop(children) })
      if (children.list.length === 0) this.#known.delete(key)
    }
    return { records, forget }
  }

  #of(key: string): Children {
    let children = this.#known.get(key)
    if (children === undefined) this.#known.set(key, (children = new Children(key, this.#births)))
    return children
  }

  #insert(children: Children, child: Child): void {
    const { list } = children
    const last = list.findLastIndex((one) => !isBefore(child, one))
    list.splice(last + 1, 0, child)
    children.changes++
    this.#births.set(child.address, [...(this.#births.get(child.address) ?? []), { ...child, by: children }])
  }

  #pop(children: Children): string {
    const { address } = children.list.at(-1)!
    this.#remove(children, address)
    return address
  }

  #remove(children: Children, address: string): void {
    children.list.splice(
      children.list.findLastIndex((child) => child.address === address),
      1,
    )
    children.changes++
    const others = this.#births.get(address)!.filter(({ by }) => by !== children)
    if (others.length === 0) this.#births.delete(address)
    else this.#births.set(address, others)
  }
}

/** The record of a child. */
export const recordOf = ({ key }: Children, child: Child): SourceRecord => ({
  key,
  value: child.address,
  cursor: cursorOfLog(child),
})
