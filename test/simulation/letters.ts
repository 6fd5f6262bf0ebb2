import { Effect } from "effect"
import type { DeadLetter } from "../../core/index.ts"
import type { Life } from "./life.ts"
import { keyOf } from "./oracle.ts"
import { NETWORK } from "./setup.ts"
import type { World } from "./world.ts"

/** The dead letters, as the runtime lists them; what is listed is known to have died. */
export const listLetters = Effect.fnUntraced(function* (world: World, { parts }: Life) {
  const letters: Array<DeadLetter> = []
  for (let after: string | null = null; ;) {
    const page: { readonly items: ReadonlyArray<{ readonly node: DeadLetter }>; readonly endCursor: string | null } & {
      readonly hasNextPage: boolean
    } = yield* parts!.letters.list({ network: NETWORK, first: 1000, after })
    letters.push(...page.items.map(({ node }) => node))
    if (!page.hasNextPage) break
    after = page.endCursor
  }
  for (const { sink, matchId } of letters) world.addLetter(sink, matchId)
  return letters
})

/** The hit that a letter is about, as the oracle names it. */
export const keyOfLetter = ({ monitor, payload }: DeadLetter): string | null => {
  if (payload === null) return null
  const { event } = JSON.parse(payload)
  return keyOf(monitor, event.block.hash, event.log.index)
}
