import { type Cursor, isAfter } from "../model/cursor.ts"
import { digestId } from "../model/sink-event.ts"
import type { NewMatch } from "./storage.ts"

/** A match that opens a life. */
export interface OpenedMatch {
  readonly match: NewMatch
  readonly life: number
}

/** What is minted, delivered and taken back as one: a match, or the members of a gate's emission. */
export interface Emission {
  readonly members: ReadonlyArray<OpenedMatch>
  readonly sinks: ReadonlyArray<string>
  /** Of several members: what they have in common, in the feed and as the digest of their rows. */
  readonly emission: string | null
  /** Of several members: the cursor of the newest, where the rows of all lie. */
  readonly kept: Cursor | null
  /** Whether its cursor's slot of the checkpoint waits for its rows. */
  readonly slot: boolean
}

/** The last of the cursors. */
export const newestOf = (members: ReadonlyArray<{ readonly cursor: Cursor }>): Cursor =>
  members.reduce((newest, { cursor }) => (isAfter(cursor, newest) ? cursor : newest), members[0]!.cursor)

/** Makes one of a unit's matches that open a life. A gate's rows hold no slot: its hits stand in rows themselves. */
export const emissionOf = (members: ReadonlyArray<OpenedMatch>, slot: boolean): Emission => {
  const first = members[0]!.match
  const several = members.length > 1
  return {
    members,
    sinks: first.sinks,
    emission: several ? digestId(members.map(({ match, life }) => ({ matchId: match.id, life }))) : null,
    kept: several ? newestOf(members.map(({ match }) => match)) : null,
    slot: slot && !several && first.gate === undefined,
  }
}

/** Each match once, without those whose predicate failed for no sink. */
export const distinct = (matches: ReadonlyArray<NewMatch>): ReadonlyArray<NewMatch> => {
  const seen = new Set<string>()
  return matches.filter(({ id, failure, sinks }) => {
    if (seen.has(id) || (failure !== undefined && sinks.length === 0)) return false
    seen.add(id)
    return true
  })
}
