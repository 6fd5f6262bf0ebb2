/*
 * The contract of plugins as checks that run in any test runner.
 */

export { type ConformanceCheck, type ConformanceEnvironment, ConformanceFailure } from "./conformance-check.ts"
export { type SinkConformance, sinkConformance } from "./conformance-sink.ts"
export { type SourceConformance, sourceConformance } from "./conformance-source.ts"
