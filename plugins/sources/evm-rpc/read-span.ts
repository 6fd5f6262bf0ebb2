import { Effect, type Tracer } from "effect"
import { inSpan } from "../../../core/plugin/tracing.ts"
import { Allowance } from "./rpc/allowance.ts"

/** Runs the read of the blocks `from` to `to` within its allowance, in a span of its own if anybody reads it. */
export const inReadSpan = <A, E, R>(
  { from, to }: { readonly from: number; readonly to: number },
  allowance: Allowance,
  read: (span: Tracer.Span | null) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  inSpan(
    "read blocks",
    () => ({
      kind: "client",
      attributes: { "rpc.system.name": "jsonrpc", "blockwatcher.block.from": from, "blockwatcher.block.to": to },
    }),
    (span) => {
      const reading = Effect.provideService(read(span), Allowance, allowance)
      if (span === null) return reading
      const count = Effect.sync(() => span.attribute("blockwatcher.rpc.requests", allowance.requests))
      return Effect.ensuring(reading, count)
    },
  )
