import { Result } from "effect"
import { type Cursor, isAfter } from "../model/cursor.ts"
import { Held } from "./error.ts"
import type { Lease, Owner, Pipeline, Rewound } from "./storage.ts"

/** A network's pipeline row, as the rules of a claim, of progress and of taking back change it; read and written by its storage. */
export class NetworkRow {
  dirty = false
  readonly id: string
  epoch: number
  deleted: boolean
  leaseOwner: string | null
  leaseUntil: number
  minted: Cursor | null
  checkpoint: Cursor | null
  checkpointAt: number
  feedPosition: number
  /** The highest primary that the checkpoint ever had: rows are pruned by it. */
  highPrimary: number | null
  start: Cursor | null
  /** The highest bound that rows were pruned below. */
  sweptPrimary: number | null
  /** Rows at and before it may have been lost before an invalidation could retract them. */
  prunedPrimary: number | null
  paused: boolean
  /** How many invalidations were carried out. */
  invalidations: number

  constructor(id: string, tuple: PipelineTuple) {
    const [epoch, deleted, leaseOwner, leaseUntil, mintedPrimary, mintedSecondary] = tuple
    const [, , , , , , checkpointPrimary, checkpointSecondary, checkpointAt, feedPosition] = tuple
    const [
      ,
      ,
      ,
      ,
      ,
      ,
      ,
      ,
      ,
      ,
      startPrimary,
      startSecondary,
      highPrimary,
      sweptPrimary,
      prunedPrimary,
      paused,
      invalidations,
    ] = tuple
    this.id = id
    this.epoch = epoch
    this.deleted = deleted === 1
    this.leaseOwner = leaseOwner
    this.leaseUntil = leaseUntil
    this.minted = cursorOf(mintedPrimary, mintedSecondary)
    this.checkpoint = cursorOf(checkpointPrimary, checkpointSecondary)
    this.checkpointAt = checkpointAt
    this.feedPosition = feedPosition
    this.start = cursorOf(startPrimary, startSecondary)
    this.highPrimary = highPrimary
    this.sweptPrimary = sweptPrimary
    this.prunedPrimary = prunedPrimary
    this.paused = paused === 1
    this.invalidations = invalidations
  }

  /** A network that nobody claimed yet. */
  static unclaimed(id: string): NetworkRow {
    return new NetworkRow(id, [0, 0, null, 0, null, null, null, null, 0, 0, null, null, null, null, null, 0, 0])
  }

  /** What is stored of it, in the order of `PipelineTuple`. */
  get values(): PipelineTuple {
    return [
      this.epoch,
      this.deleted ? 1 : 0,
      this.leaseOwner,
      this.leaseUntil,
      this.minted?.primary ?? null,
      this.minted?.secondary ?? null,
      this.checkpoint?.primary ?? null,
      this.checkpoint?.secondary ?? null,
      this.checkpointAt,
      this.feedPosition,
      this.start?.primary ?? null,
      this.start?.secondary ?? null,
      this.highPrimary,
      this.sweptPrimary,
      this.prunedPrimary,
      this.paused ? 1 : 0,
      this.invalidations,
    ]
  }

  /** The row as its readers see it; null for a network that was deleted. */
  get pipeline(): Pipeline | null {
    if (this.deleted) return null
    const { id: network, minted, checkpoint, checkpointAt, feedPosition, start, paused } = this
    return { network, minted, checkpoint, checkpointAt, feedPosition, start, paused }
  }

  /** The life of a match without a row. Where a gap may have left none of earlier lives, it is one that none of them had. */
  firstLife({ primary }: Cursor): number {
    return this.prunedPrimary !== null && primary <= this.prunedPrimary ? 1 + this.invalidations : 1
  }

  /**
   * Takes the network over where its lease allows it: its next epoch. A deleted network begins anew, if it was made again.
   *
   * @param exists whether there is such a network; asked for a deleted one only
   */
  claim(lease: Lease, now: number, exists: boolean): Result.Result<Owner, Held> {
    if (this.deleted && !exists) return Result.fail(new Held({ network: this.id, holder: "nobody" }))
    const holder = this.leaseOwner
    const free = holder === null || holder === lease.holder || this.leaseUntil <= now || lease.isGone(holder)
    if (!free) return Result.fail(new Held({ network: this.id, holder }))
    this.epoch++
    this.deleted = false
    this.leaseOwner = lease.holder
    this.leaseUntil = now + lease.ms
    this.dirty = true
    return Result.succeed({ network: this.id, epoch: this.epoch })
  }

  /** The lease begins anew. */
  renew(ms: number, now: number): void {
    this.leaseUntil = now + ms
    this.dirty = true
  }

  /** Gives the lease back. */
  release(): void {
    this.leaseOwner = null
    this.leaseUntil = 0
    this.dirty = true
  }

  /** Stores the resolved start, unless there is one. */
  begin(start: Cursor, now: number): void {
    if (this.minted !== null) return
    this.start = start
    this.advanceMinted(start)
    this.advanceCheckpoint(start, now)
  }

  /** Lets the network rest, or go on. */
  pause(paused: boolean): void {
    this.paused = paused
    this.dirty = true
  }

  /** Takes `count` feed positions; answers the first. */
  takePositions(count: number): number {
    const first = this.feedPosition + 1
    this.feedPosition += count
    this.dirty = true
    return first
  }

  advanceMinted(to: Cursor): void {
    if (this.minted !== null && !isAfter(to, this.minted)) return
    this.minted = to
    this.dirty = true
  }

  /** Forward only, and at most to `minted`. */
  advanceCheckpoint(to: Cursor, now: number): void {
    if (this.minted === null) return
    const target = isAfter(to, this.minted) ? this.minted : to
    if (this.checkpoint !== null && !isAfter(target, this.checkpoint)) return
    this.checkpoint = target
    this.checkpointAt = now
    this.highPrimary = Math.max(this.highPrimary ?? target.primary, target.primary)
    this.dirty = true
  }

  /** Rows below a bound were pruned. */
  sweep(bound: number): void {
    if (this.sweptPrimary !== null && bound <= this.sweptPrimary) return
    this.sweptPrimary = bound
    this.dirty = true
  }

  /** The last step of an invalidation: back to `from`, but not behind the start. */
  rewind(from: Cursor, journalDepth: number, now: number): Rewound & { readonly target: Cursor } {
    // Rows may have been pruned by another depth than that of today.
    const floor = Math.max((this.highPrimary ?? -Infinity) - journalDepth, this.sweptPrimary ?? -Infinity)
    const gap = from.primary < floor ? this.highPrimary : null
    if (gap !== null) this.prunedPrimary = Math.max(this.prunedPrimary ?? floor, floor)
    const target = this.start !== null && isAfter(this.start, from) ? this.start : from
    const moved = this.#moveBack(target, now)
    this.invalidations++
    return { to: this.minted, moved, gap, target }
  }

  /** Answers whether the checkpoint moved. */
  #moveBack(to: Cursor, now: number): boolean {
    const moved = this.checkpoint !== null && isAfter(this.checkpoint, to)
    if (moved) {
      this.checkpoint = to
      this.checkpointAt = now
    }
    if (this.minted !== null && isAfter(this.minted, to)) this.minted = to
    this.dirty = true
    return moved
  }
}

export type PipelineTuple = readonly [
  epoch: number,
  deleted: number,
  leaseOwner: string | null,
  leaseUntil: number,
  mintedPrimary: number | null,
  mintedSecondary: number | null,
  checkpointPrimary: number | null,
  checkpointSecondary: number | null,
  checkpointAt: number,
  feedPosition: number,
  startPrimary: number | null,
  startSecondary: number | null,
  highPrimary: number | null,
  sweptPrimary: number | null,
  prunedPrimary: number | null,
  paused: number,
  invalidations: number,
]

const cursorOf = (primary: number | null, secondary: number | null): Cursor | null =>
  primary === null || secondary === null ? null : { primary, secondary }

/**
 * Ends what a pipeline's row tells of a network that is deleted, by its id. The row stays, for positions that never
 * restart; the next epoch keeps out an owner that still writes.
 */
export const RESET_PIPELINE = `UPDATE pipelines SET epoch = epoch + 1, deleted = 1,
  minted_primary = NULL, minted_secondary = NULL, checkpoint_primary = NULL, checkpoint_secondary = NULL,
  checkpoint_at = 0, start_primary = NULL, start_secondary = NULL, high_primary = NULL, swept_primary = NULL,
  pruned_primary = NULL, paused = 0, invalidations = 0, lease_until = 0, lease_owner = NULL WHERE network = ?`
