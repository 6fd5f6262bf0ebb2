import { Effect, Random } from "effect"
import { type Address, encodeFunctionData, type Hex } from "viem"
import { TOKEN_ABI, TOKEN_ADDRESS } from "./token.ts"
import type { Wallet } from "./wallet.ts"

/** One transaction: `to` receives, or may spend. */
export interface Move {
  readonly kind: "transfer" | "approve"
  readonly from: Address
  readonly to: Address
  readonly value: bigint
}

/** The value from which a transfer counts as large, in units of 10^-6. */
export const LARGE = 10n ** 12n

const LARGE_EVERY = 3
const APPROVAL_EVERY = 4
const TO_SELF_EVERY = 5

const somewhereIn = (least: number, most: number) => Effect.map(Random.nextIntBetween(least, most), BigInt)

/** What happens in a second: a small transfer always, and a large one, an approval and one to self now and then. */
export const movesOf = Effect.fnUntraced(function* (second: number, holders: ReadonlyArray<Address>) {
  const [from, to, other] = yield* Random.shuffle(holders)
  if (from === undefined || to === undefined || other === undefined) return []
  const small = yield* somewhereIn(1, 1_000_000_000)
  const large = LARGE + (yield* somewhereIn(0, 4_000_000_000_000))
  const moves: Array<Move> = [{ kind: "transfer", from, to, value: small }]
  if (second % LARGE_EVERY === 0) moves.push({ kind: "transfer", from: to, to: other, value: large })
  if (second % APPROVAL_EVERY === 0) moves.push({ kind: "approve", from: other, to: from, value: small * 10n })
  if (second % TO_SELF_EVERY === 0) moves.push({ kind: "transfer", from: other, to: other, value: large })
  return moves
})

/** What a move's sender sends, to the token. */
export const callOf = ({ kind, from, to, value }: Move): { from: Address; to: Address; data: Hex } => ({
  from,
  to: TOKEN_ADDRESS,
  data: encodeFunctionData({ abi: TOKEN_ABI, functionName: kind, args: [to, value] }),
})

const send = (wallet: Wallet, move: Move) => {
  const { from, to, data } = callOf(move)
  return wallet.attempt((client) => client.sendTransaction({ account: from, to, data }))
}

/** Sends moves each second, for ever. A second in which the node does not answer is left out; the first one is logged. */
export const keepMoving = (wallet: Wallet, holders: ReadonlyArray<Address>): Effect.Effect<never> =>
  Effect.gen(function* () {
    let isWell = true
    for (let second = 0; ; second++) {
      const moves = yield* movesOf(second, holders)
      isWell = yield* Effect.forEach(moves, (move) => send(wallet, move), { discard: true }).pipe(
        Effect.as(true),
        Effect.catchTag("DevnetError", (error) =>
          isWell ? Effect.as(Effect.logWarning(error.message), false) : Effect.succeed(false),
        ),
      )
      yield* Effect.sleep("1 second")
    }
  })
