/** The id of the built-in sink whose rows become events of durable actions. */
export const ACTIONS = "actions"

/** The encoding of the payloads that this version writes; a row without one was written in the first. */
export const ENCODING = 1

/** The type of the events of a monitor's matches and of their retractions. */
export const matchType = (monitor: string): string => `match:${monitor}`

/** What makes events of the rows of the sink `actions`; without it they are rows of a sink like any other. */
export interface EventTerms {
  /** The names of the actions that are subscribed to each monitor: each gets a delivery of its events. */
  readonly actions: ReadonlyMap<string, ReadonlyArray<string>>
  /** The W3C trace context that new events keep. */
  readonly traceparent?: string | null
}

/** The state of a match, as the events of it tell. */
export interface MatchState {
  /** Whether it stands: the chain has not taken it back. */
  readonly canonical: boolean
  /** Its newest life. */
  readonly life: number
}
