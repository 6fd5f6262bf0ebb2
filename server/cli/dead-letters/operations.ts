import { Schema } from "effect"
import { operation } from "../client/command.ts"

const Letter = Schema.Struct({
  id: Schema.String,
  network: Schema.String,
  sink: Schema.String,
  monitor: Schema.String,
  matchId: Schema.String,
  cursor: Schema.Struct({ primary: Schema.String, secondary: Schema.Int }),
  kind: Schema.String,
  attempts: Schema.Int,
  reason: Schema.String,
  createdAt: Schema.String,
  replayable: Schema.Boolean,
  whyNot: Schema.NullOr(Schema.String),
})

/** A dead letter as the server shows it. */
export type Letter = typeof Letter.Type

const LETTER = `id network sink monitor matchId cursor { primary secondary } kind attempts reason createdAt replayable whyNot`

export const LIST = operation(
  `query ($network: ID!, $sink: ID, $monitor: ID, $kind: DeliveryKind, $ended: Boolean, $first: Int, $after: String) {
    deadLetters(
      network: $network, sink: $sink, monitor: $monitor, kind: $kind, ended: $ended, first: $first, after: $after
    ) {
      totalCount edges { node { ${LETTER} } } pageInfo { hasNextPage endCursor }
    }
  }`,
  Schema.Struct({
    deadLetters: Schema.Struct({
      totalCount: Schema.Int,
      edges: Schema.Array(Schema.Struct({ node: Letter })),
      pageInfo: Schema.Struct({ hasNextPage: Schema.Boolean, endCursor: Schema.NullOr(Schema.String) }),
    }),
  }),
)

export const REPLAY = operation(
  `mutation ($id: ID!) { replayDeadLetter(id: $id) { delivered deadLetter { ${LETTER} } } }`,
  Schema.Struct({
    replayDeadLetter: Schema.Struct({ delivered: Schema.Boolean, deadLetter: Schema.NullOr(Letter) }),
  }),
)

export const REPLAY_ALL = operation(
  `mutation ($network: ID!, $sink: ID, $monitor: ID, $first: Int, $after: String) {
    replayDeadLetters(network: $network, sink: $sink, monitor: $monitor, first: $first, after: $after) {
      delivered failed skipped whySkipped endCursor
    }
  }`,
  Schema.Struct({
    replayDeadLetters: Schema.Struct({
      delivered: Schema.Int,
      failed: Schema.Int,
      skipped: Schema.Int,
      whySkipped: Schema.Array(Schema.String),
      endCursor: Schema.NullOr(Schema.String),
    }),
  }),
)

export const DISCARD = operation(
  `mutation ($id: ID!) { discardDeadLetter(id: $id) }`,
  Schema.Struct({ discardDeadLetter: Schema.Boolean }),
)

export const DISCARD_ALL = operation(
  `mutation ($network: ID!, $sink: ID, $monitor: ID, $kind: DeliveryKind, $ended: Boolean) {
    discardDeadLetters(network: $network, sink: $sink, monitor: $monitor, kind: $kind, ended: $ended)
  }`,
  Schema.Struct({ discardDeadLetters: Schema.Int }),
)

export const OFFER = operation(
  `mutation ($network: ID!, $sink: ID!) { offerRetractions(network: $network, sink: $sink) }`,
  Schema.Struct({ offerRetractions: Schema.Int }),
)
