import { Effect } from "effect"
import { MAX_SECONDARY } from "../../core/model/cursor.ts"
import { graphqlData } from "../support/graphql.ts"
import { waitFor } from "../support/process.ts"

/** A network as GraphQL shows it. */
export interface ShownNetwork {
  readonly state: string
  readonly error: string | null
  readonly inFlightEvents: number
  readonly checkpoint: { readonly cursor: { readonly primary: string; readonly secondary: number } } | null
}

const NETWORK = `query ($id: ID!) { network(id: $id) { state error inFlightEvents checkpoint { cursor { primary secondary } } } }`

export const networkNow = (url: string, id: string): Effect.Effect<ShownNetwork> =>
  Effect.promise(() => graphqlData<{ network: ShownNetwork }>(url, NETWORK, { id })).pipe(
    Effect.map(({ network }) => network),
  )

/** The last block that a network is finished with, whole; -1 before it has started. */
export const checkpointOf = ({ checkpoint }: Pick<ShownNetwork, "checkpoint">): number => {
  if (checkpoint === null) return -1
  const { primary, secondary } = checkpoint.cursor
  return secondary === MAX_SECONDARY ? Number(primary) : Number(primary) - 1
}

export const waitForCheckpoint = (url: string, id: string, block: number): Effect.Effect<ShownNetwork> =>
  waitFor(`the checkpoint of ${id} is at ${block}`, networkNow(url, id), (network) => checkpointOf(network) >= block)
