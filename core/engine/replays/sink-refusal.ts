import type { SinkHandle } from "../../pipeline/sink-handle.ts"

/** Why nothing can be sent to a sink by hand at present, and what to do; null if it can. */
export const sinkRefusal = (sink: string, handle: SinkHandle): string | null => {
  if (handle.isMissing) return `sink "${sink}" does not exist; make it again with putSink, then repeat this`
  if (handle.paused !== null) {
    return `sink "${sink}" is paused (${handle.paused}); let it go on with resumeSink, then repeat this`
  }
  if (handle.runtime !== null) return null
  return `sink "${sink}" is FAILED (${handle.error ?? "it is being built"}); put it right with putSink, then repeat this`
}
