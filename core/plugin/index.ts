/*
 * All that a plugin is written against: import it as `blockwatcher/plugin`.
 */

export {
  type ConformanceCheck,
  type ConformanceEnvironment,
  ConformanceFailure,
  type SinkConformance,
  sinkConformance,
  type SourceConformance,
  sourceConformance,
} from "./conformance.ts"
export { decodeConfig } from "./decode-config.ts"
export {
  Egress,
  HttpFailure,
  type EgressPolicy,
  type HttpRequest,
  type HttpResponse,
  type OpenSocket,
  type SocketRequest,
} from "./egress.ts"
export {
  type DeliveryError,
  Permanent,
  PluginRefused,
  RateLimited,
  type SourceError,
  SourceRefused,
  SourceUnavailable,
  TooLarge,
  Transient,
} from "./error.ts"
export { excerpt } from "./secrets-excerpt.ts"
export { fieldProblems, resolveField, type ResolvedField } from "./secrets-field.ts"
export { isBrokenReference, isSecretReference, SecretReference, Secrets, SecretUnavailable } from "./secrets.ts"
export { type Delivery, type Plugin, type Sink, SinkPlugin } from "./sink.ts"
export {
  type Anchor,
  type Interest,
  type InterestSet,
  type LateBatch,
  type RecordId,
  type Resume,
  type SelectorDescription,
  type Source,
  type SourceBatch,
  type SourceEvent,
  type SourceOutcome,
  SourcePlugin,
  type SourceRecord,
  type SourceRun,
} from "./source.ts"
export { presentTraceparent } from "./tracing.ts"

export {
  compareCursors,
  Cursor,
  endOf,
  formatCursor,
  isAfter,
  MAX_SECONDARY,
  minCursor,
  startOf,
} from "../model/cursor.ts"
export type {
  AddressFormat,
  EventShape,
  Fields,
  FieldType,
  FieldValue,
  Json,
  JsonObject,
  RecordType,
  ScalarKind,
} from "../model/fields.ts"
export { FORM } from "../model/fields.ts"
export { Problem } from "../model/problem.ts"
export type { Match, SinkEvent } from "../model/sink-event.ts"
