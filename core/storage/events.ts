/** The id of the built-in sink whose rows become events of durable actions. */
export const ACTIONS = "actions"

/** The encoding of the payloads that this version writes; a row without one was written in the first. */
export const ENCODING = 1

/** The type of the events of a monitor's matches and of their retractions. */
export const matchType = (monitor: string): string => `match:${monitor}`

/** An event of a match on its way in. */
export interface NewEvent {
  readonly monitor: string
  readonly pk: number
  readonly matchId: string
  readonly life: number
  /** Where the match's rows lie. */
  readonly primary: number
  /** What the members of a gate's emission have in common. */
  readonly emission: string | null
}

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

/**
 * The events whose deliveries to actions are given up with a sink or a monitor, as a condition on `e`; null if there are none.
 * Whoever got a match still hears of its retraction when the monitor is gone.
 */
export const openEvents = (
  by: { readonly sink: string } | { readonly monitor: string },
): { readonly where: string; readonly values: ReadonlyArray<string> } | null => {
  if ("monitor" in by) return { where: `e.type = ? AND e.kind = 'match'`, values: [matchType(by.monitor)] }
  return by.sink === ACTIONS ? { where: `e.match_id IS NOT NULL`, values: [] } : null
}

/** By what deliveries to actions are counted that a deletion would take away; null if it takes none. */
export const countedEvents = ({
  network,
  monitor,
  sink,
}: {
  readonly network?: string
  readonly monitor?: string
  readonly sink?: string
}) =>
  sink !== undefined && sink !== ACTIONS
    ? null
    : {
        by: { network: network !== undefined, type: monitor !== undefined },
        values: [network, monitor === undefined ? undefined : matchType(monitor)].filter(
          (value) => value !== undefined,
        ),
      }
