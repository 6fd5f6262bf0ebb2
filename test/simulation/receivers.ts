import { keyOf } from "./oracle.ts"
import type { SinkSetup } from "./setup.ts"

/** Where a log is. */
export interface LogPlace {
  readonly block: number
  readonly hash: string
  readonly index: number
}

/** A match as a body tells it. */
export interface Member extends LogPlace {
  readonly id: string
  readonly key: string
  readonly monitor: string
  readonly value: string
}

/** What is known of the world, for a receiver to judge what it is told. */
export interface Known {
  /** Monitors that have a gate. */
  readonly gated: ReadonlySet<string>
  /** Whether some fork holds both blocks. */
  readonly areOnOneFork: (hash: string, other: string) => boolean
  /** Whether a match of the log may come late. */
  readonly mayBeLate: (place: LogPlace) => boolean
  readonly mayBeTakenBack: (place: LogPlace) => boolean
  readonly heard: (place: LogPlace) => void
}

/** What a sink is told. */
export interface Told {
  /** Of the delivery. */
  readonly id: string
  readonly body: string
  readonly content: Content
  /** It is, or may be, told again by hand: outside the order. */
  readonly isReplay: boolean
}

export type Content =
  | { readonly kind: "match" | "digest"; readonly members: ReadonlyArray<Member> }
  | { readonly kind: "retracted"; readonly match: string }

/** What a receiver holds of a match. */
export interface Held extends Member {
  /** The keys of all that were told with it. */
  readonly together: ReadonlyArray<string>
}

export const readBody = (body: string): Content => {
  const json = JSON.parse(body)
  if (json.type === "retracted") return { kind: "retracted", match: json.match_id }
  const matches: ReadonlyArray<any> = json.type === "digest" ? json.matches : [json]
  const members = matches.map(({ id, monitor, event }) => ({
    id,
    key: keyOf(monitor, event.block.hash, event.log.index),
    monitor,
    block: event.block.number,
    hash: event.block.hash,
    index: event.log.index,
    value: event.args.value,
  }))
  return { kind: json.type, members }
}

const DELIVERY = /^([0-9a-f]{64})(?:-(\d+))?(-r)?$/

const comesBefore = (a: Member, b: Member): boolean => a.block < b.block || (a.block === b.block && a.index < b.index)

/** A receiver that applies what it is sent in order, and looks for what must not come. */
export class Receiver {
  readonly setup: SinkSetup
  readonly held = new Map<string, Held>()
  /** Matches that were told, by their ids: those that are no longer held too. */
  readonly known = new Map<string, Member>()
  /** Every delivery that was accepted, in order. */
  readonly accepted: Array<Told> = []
  /** A retraction may have died here, so that it may hold what is gone until that is offered again. */
  missedRetraction = false
  readonly #bodies = new Map<string, string>()
  readonly #lives = new Map<string, { readonly life: number; readonly ended: boolean }>()
  /** The newest of what came first, since the last retraction. */
  #newest: Member | null = null
  readonly #world: Known
  readonly #violation: (text: string) => void

  constructor(setup: SinkSetup, world: Known, violation: (text: string) => void) {
    this.setup = setup
    this.#world = world
    this.#violation = (text) => violation(`${setup.id}: ${text}`)
  }

  /** The order begins anew: a retraction is tried, or another runtime goes on from what stands in rows. */
  beginOrder(): void {
    this.#newest = null
  }

  accept(told: Told): void {
    const { content } = told
    const isFirst = !this.#bodies.has(told.id)
    this.#checkBytes(told)
    this.accepted.push(told)
    if (content.kind === "retracted") {
      this.#checkLife(told, content.match, true)
      this.#checkTakenBack(told, content.match)
      this.held.delete(content.match)
      return
    }
    const { members } = content
    if (members.length === 1) this.#checkLife(told, members[0]!.id, false)
    const fresh = members.filter(({ id }) => !this.held.has(id))
    if (fresh.length > 0 && !told.isReplay) this.#checkOrder(told, members, fresh)
    if (isFirst) this.#checkFork(told, members)
    const together = members.map(({ key }) => key)
    for (const member of members) {
      this.held.set(member.id, { ...member, together })
      this.known.set(member.id, member)
      this.#world.heard(member)
    }
  }

  #checkBytes({ id, body }: Told): void {
    const before = this.#bodies.get(id)
    if (before !== undefined && before !== body) this.#violation(`other bytes for ${id}: ${body}, before ${before}`)
    this.#bodies.set(id, body)
  }

  #checkLife({ id }: Told, match: string, ended: boolean): void {
    const [, ofMatch, text, retraction] = DELIVERY.exec(id) ?? []
    if (ofMatch !== match || (retraction !== undefined) !== ended) {
      this.#violation(`the delivery ${id} holds ${match}`)
      return
    }
    const life = Number(text ?? 1)
    const present = this.#lives.get(match)
    if (present !== undefined && (!this.missedRetraction || life === present.life)) {
      const isNew = present.ended && life > present.life
      if (!isNew && life !== present.life)
        this.#violation(`${id} came in life ${present.life} (ended: ${present.ended})`)
      else if (!isNew && present.ended && !ended) this.#violation(`${id} came after its retraction`)
    }
    if (present === undefined || life >= present.life) this.#lives.set(match, { life, ended })
  }

  #checkOrder({ id }: Told, members: ReadonlyArray<Member>, fresh: ReadonlyArray<Member>): void {
    const isGated = this.#world.gated.has(members[0]!.monitor)
    // A part of what a gate told together stands where the whole stood, which does not show.
    if (isGated && this.setup.splits) return
    const inOrder = (isGated ? members : fresh).filter((member) => !this.#world.mayBeLate(member))
    // What a late hit may have completed comes when that is found.
    if (inOrder.length === 0 || (isGated && inOrder.length < members.length)) return
    const last = inOrder.at(-1)!
    const newest = this.#newest
    if (this.setup.isOrdered && newest !== null && comesBefore(last, newest)) {
      this.#violation(
        `${id} of ${last.monitor} ${last.block}:${last.index} came behind ${newest.monitor} ${newest.block}:${newest.index}`,
      )
    }
    this.#newest = last
  }

  /** What stands is never taken back; with a member of an emission, all of it is. */
  #checkTakenBack({ id }: Told, match: string): void {
    const member = this.known.get(match)
    if (member === undefined || this.#world.gated.has(member.monitor) || this.#world.mayBeTakenBack(member)) return
    this.#violation(`${id} of block ${member.block} is taken back, although that never left the chain`)
  }

  #checkFork({ id }: Told, members: ReadonlyArray<Member>): void {
    if (this.missedRetraction) return
    let newest: Held | null = null
    for (const held of this.held.values()) if (newest === null || held.block > newest.block) newest = held
    const last = members.at(-1)!
    if (newest === null || this.#world.areOnOneFork(last.hash, newest.hash)) return
    this.#violation(
      `${id} of block ${last.block} ${last.hash.slice(0, 8)} came while ${newest.block} ${newest.hash.slice(0, 8)} is held`,
    )
  }
}
