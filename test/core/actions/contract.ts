import { describe } from "@effect/vitest"
import type { Effect, Scope } from "effect"
import { calls } from "./contract/calls.ts"
import { many } from "./contract/many.ts"
import { matches } from "./contract/matches.ts"
import { operators } from "./contract/operators.ts"
import { payloads } from "./contract/payloads.ts"
import { runners } from "./contract/runners.ts"
import { running } from "./contract/running.ts"
import { testOn } from "./contract/support.ts"
import { tenants } from "./contract/tenants.ts"
import type { World } from "./program.ts"

const parts = { running, calls, payloads, tenants, matches, operators, many, runners }

/**
 * What actions do whatever database they write. `make` makes empty databases, each time it is run.
 *
 * @param only the parts that the kind of database makes a difference to; all unless set
 */
export const actionsContract = (
  make: Effect.Effect<World, never, Scope.Scope>,
  only: ReadonlyArray<keyof typeof parts> = Object.keys(parts) as Array<keyof typeof parts>,
): void => {
  for (const part of only) describe(part, () => parts[part](testOn(make)))
}
