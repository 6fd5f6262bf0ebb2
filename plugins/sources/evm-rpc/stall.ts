import { Effect, Result } from "effect"
import type { Chain } from "./chain.ts"
import type { Provider, Providers } from "./rpc/providers.ts"

/** Polls without a new block after which other providers are asked whether they are further. */
const STALL_POLLS = 15

/** Notices a provider that stands still while others go on: it is left aside until it has caught up. */
export const makeStallWatch = (
  chain: Chain,
  providers: Providers,
): ((by: Provider, head: number) => Effect.Effect<void>) => {
  let highest = -1
  let polls = 0
  return Effect.fnUntraced(function* (by, head) {
    if (head > highest) {
      highest = head
      polls = 0
      return
    }
    polls++
    if (polls % STALL_POLLS !== 0) return
    for (const other of providers.list) {
      if (other === by || other.health.benched) continue
      const answer = yield* Effect.result(providers.on(other, () => chain.headersOn(other, [])))
      if (Result.isFailure(answer) || answer.success.latest.number <= head) continue
      const further = answer.success.latest.number
      const again = yield* Effect.result(providers.on(by, () => chain.headersOn(by, [])))
      if (Result.isSuccess(again) && again.success.latest.number > head) return // a block came in between
      yield* providers.bench(by, `it stays at block ${head} while ${other.client.label} is at ${further}`, further)
      return
    }
  })
}
