import { Effect, Exit, Result } from "effect"
import type { Held, Lease, Owner } from "../storage.ts"
import type { Group } from "./group.ts"

/** Takes a network over, if its lease allows it, by the database's clock. */
export const claim = ({ network, clock, takenOver }: Group, lease: Lease): Effect.Effect<Exit.Exit<Owner, Held>> =>
  Result.match(network.claim(lease, clock), {
    onFailure: (held) => Effect.succeed(Exit.fail(held)),
    onSuccess: (owner) => Effect.as(takenOver, Exit.succeed(owner)),
  })
