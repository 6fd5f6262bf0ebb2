import { ActionDeliveryEntity, EventEntity, HandledDeliveryEntity, ProviderCallEntity, RunEntity } from "./events.ts"
import { MonitorEntity, NetworkEntity, SeedEntity, SinkEntity } from "./resources.ts"
import {
  AnchorEntity,
  CounterEntity,
  DeadLetterCountEntity,
  DeliveryEntity,
  FeedTrimEntity,
  GateHitEntity,
  InvalidationEntity,
  MatchEntity,
  PipelineEntity,
  SourceRecordEntity,
} from "./rows.ts"

/** Every table that MikroORM knows. An explicit list: nothing is discovered from files. */
export const entities = [
  NetworkEntity,
  MonitorEntity,
  SinkEntity,
  SeedEntity,
  PipelineEntity,
  MatchEntity,
  DeliveryEntity,
  DeadLetterCountEntity,
  GateHitEntity,
  InvalidationEntity,
  AnchorEntity,
  SourceRecordEntity,
  FeedTrimEntity,
  CounterEntity,
  EventEntity,
  ActionDeliveryEntity,
  HandledDeliveryEntity,
  ProviderCallEntity,
  RunEntity,
]
