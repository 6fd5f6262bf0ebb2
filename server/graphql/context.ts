import type { Context } from "effect"
import type { Actions } from "../../core/actions/actions.ts"
import type { DeadLetters } from "../../core/engine/dead-letters.ts"
import type { Feed } from "../../core/engine/feed.ts"
import type { Resources } from "../../core/engine/resources.ts"
import type { Views } from "./views.ts"

/** What resolvers need from the engine. */
export type Services = Resources | Feed | DeadLetters | Actions

/** What every resolver is given: the engine's services, and the views that this operation has read so far. */
export interface GraphqlContext {
  readonly services: Context.Context<Services>
  readonly views: Views
}
