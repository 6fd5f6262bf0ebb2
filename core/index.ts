/** All that a program which embeds the runtime imports. */
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
export { Storage } from "./storage/storage.ts"
export { layerSqlite } from "./storage/sqlite/layer.ts"
