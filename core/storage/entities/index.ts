import { MonitorEntity, NetworkEntity, SeedEntity, SinkEntity } from "./resources.ts"
import {
  AnchorEntity,
  CounterEntity,
  DeliveryEntity,
  FeedTrimEntity,
  InvalidationEntity,
  MatchEntity,
  PipelineEntity,
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
  InvalidationEntity,
  AnchorEntity,
  FeedTrimEntity,
  CounterEntity,
]
