/** All that a program which embeds the runtime imports. */
export { Action, type ActionContext, type Calls, type EventOf, type Subscription } from "./actions/action.ts"
export { Actions } from "./actions/actions.ts"
export { DefinitionInvalid } from "./actions/definition-invalid.ts"
export type { EmitOptions } from "./actions/emit.ts"
export {
  ActionNotFound,
  DeliveryNotFound,
  DeliveryRefused,
  EmitRefused,
  InvalidCursor,
  ResultInvalid,
} from "./actions/error.ts"
export { EventStore, type EventStoreOptions, PrepareFailed } from "./actions/event-store.ts"
export { type EmittedEvent, EventType } from "./actions/event-type.ts"
export { InvalidPayload } from "./actions/invalid-payload.ts"
export { MatchStateUnavailable } from "./actions/match-states.ts"
export { Match, type MatchEvent, type MatchOf } from "./actions/match.ts"
export { type CallOptions, NothingDone, type Operation, Provider, type Repeat } from "./actions/provider.ts"
export { StagingRefused, TenantViolation } from "./actions/staging/refused.ts"
export { EventStoreUnusable } from "./actions/store/create-tables.ts"
export { StoreFailed } from "./actions/store/error.ts"
export * from "./actions/views.ts"
export { Blockwatcher, type Health, type RuntimeOptions } from "./engine/blockwatcher.ts"
export {
  type DeadLetter,
  type DeadLetterPage,
  type DeadLetterReplay,
  DeadLetters,
  type DeadLettersRequest,
  type ReplayCounts,
} from "./engine/dead-letters.ts"
export { defaultSettings, type EngineSettings } from "./engine/engine.ts"
export { Conflict, InvalidPosition, NotFound, NotReplayable, Refused, StalePosition } from "./engine/error.ts"
export { Feed, type FeedItem, type FeedRequest, type MatchPage } from "./engine/feed.ts"
export type { HostSink } from "./engine/host-sink.ts"
export { type PutOptions, Resources } from "./engine/resources.ts"
export { type SeedFile, Seeds } from "./engine/seeds.ts"
export type * from "./engine/views.ts"
export * from "./plugin/index.ts"
export { NotOwner, StorageError } from "./storage/error.ts"
export { layerPostgres } from "./storage/postgres.ts"
export type { MatchState } from "./storage/events.ts"
export { Storage } from "./storage/storage.ts"
export { layerSqlite } from "./storage/sqlite/layer.ts"
