import { Schema } from "effect"
import { operation } from "../client/command.ts"

const Delivery = Schema.Struct({
  id: Schema.String,
  store: Schema.String,
  action: Schema.String,
  event: Schema.Struct({
    id: Schema.String,
    type: Schema.String,
    version: Schema.Int,
    tenant: Schema.NullOr(Schema.String),
    network: Schema.NullOr(Schema.String),
    matchId: Schema.NullOr(Schema.String),
    life: Schema.NullOr(Schema.Int),
    kind: Schema.NullOr(Schema.String),
    createdAt: Schema.String,
  }),
  state: Schema.String,
  attempts: Schema.Int,
  due: Schema.String,
  code: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  retryable: Schema.Boolean,
  resolvable: Schema.Boolean,
  cancellable: Schema.Boolean,
  calls: Schema.Array(
    Schema.Struct({
      place: Schema.Int,
      operation: Schema.String,
      key: Schema.String,
      state: Schema.String,
      sentAt: Schema.String,
    }),
  ),
  createdAt: Schema.String,
  settledAt: Schema.NullOr(Schema.String),
})

/** A delivery as the server shows it. */
export type Delivery = typeof Delivery.Type

const DELIVERY = `id store action event { id type version tenant network matchId life kind createdAt } state attempts due
  code reason retryable resolvable cancellable calls { place operation key state sentAt } createdAt settledAt`

export const LIST = operation(
  `query ($state: ActionDeliveryState, $action: ID, $store: ID, $first: Int, $after: String) {
    actionDeliveries(state: $state, action: $action, store: $store, first: $first, after: $after) {
      totalCount edges { node { ${DELIVERY} } } pageInfo { hasNextPage endCursor }
    }
  }`,
  Schema.Struct({
    actionDeliveries: Schema.Struct({
      totalCount: Schema.Int,
      edges: Schema.Array(Schema.Struct({ node: Delivery })),
      pageInfo: Schema.Struct({ hasNextPage: Schema.Boolean, endCursor: Schema.NullOr(Schema.String) }),
    }),
  }),
)

const State = Schema.Struct({ state: Schema.String })

export const RETRY = operation(
  `mutation ($id: ID!) { retryActionDelivery(id: $id) { state } }`,
  Schema.Struct({ retryActionDelivery: State }),
)

export const RESOLVE = operation(
  `mutation ($id: ID!, $done: Boolean!, $result: JSON) {
    resolveActionDelivery(id: $id, done: $done, result: $result) { state }
  }`,
  Schema.Struct({ resolveActionDelivery: State }),
)

export const CANCEL = operation(
  `mutation ($id: ID!) { cancelActionDelivery(id: $id) { state } }`,
  Schema.Struct({ cancelActionDelivery: State }),
)

const Many = Schema.Struct({
  changed: Schema.Int,
  skipped: Schema.Int,
  endCursor: Schema.NullOr(Schema.String),
})

export const RETRY_ALL = operation(
  `mutation ($state: ActionDeliveryState, $action: ID, $store: ID, $first: Int, $after: String) {
    retryActionDeliveries(state: $state, action: $action, store: $store, first: $first, after: $after) {
      changed skipped endCursor
    }
  }`,
  Schema.Struct({ retryActionDeliveries: Many }),
)

export const CANCEL_ALL = operation(
  `mutation ($state: ActionDeliveryState!, $action: ID!, $store: ID, $first: Int, $after: String) {
    cancelActionDeliveries(state: $state, action: $action, store: $store, first: $first, after: $after) {
      changed skipped endCursor
    }
  }`,
  Schema.Struct({ cancelActionDeliveries: Many }),
)
