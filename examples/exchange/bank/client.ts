import { NothingDone } from "blockwatcher"
import { Context, Effect, Layer, Schema } from "effect"

/** A movement of an account, as the bank is told of it. */
export const Order = Schema.Struct({ reference: Schema.String, customer: Schema.String, amount: Schema.BigInt })
export type Order = typeof Order.Type

export const Booked = Schema.Struct({ receipt: Schema.Int })
export const Sent = Schema.Struct({ number: Schema.Int })

/** The bank did not answer as it should; whether it did what it was asked for is not known. */
export class BankFailed extends Schema.TaggedError<BankFailed>()("BankFailed", { reason: Schema.String }) {
  override get message() {
    return `the bank failed: ${this.reason}`
  }
}

type Headers = Readonly<Record<string, string>>

/** The bank, as the exchange reaches it. */
export class Bank extends Context.Service<
  Bank,
  {
    readonly book: (order: Order, headers: Headers) => Effect.Effect<typeof Booked.Type, BankFailed | NothingDone>
    readonly sendLetter: (order: Order, headers: Headers) => Effect.Effect<typeof Sent.Type, BankFailed | NothingDone>
  }
>()("exchange/Bank") {
  static readonly layer = (url: string): Layer.Layer<Bank> =>
    Layer.succeed(Bank, {
      book: (order, headers) => post(`${url}/bookings`, order, headers, Booked),
      sendLetter: (order, headers) => post(`${url}/letters`, order, headers, Sent),
    })
}

const post = Effect.fn("bank")(function* <A, I>(
  url: string,
  order: Order,
  headers: Headers,
  answer: Schema.Codec<A, I>,
) {
  const response = yield* Effect.tryPromise({
    try: (signal) =>
      fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ ...order, amount: order.amount.toString() }),
        signal,
      }),
    catch: (error) =>
      isRefused(error) ? new NothingDone({ reason: "nobody listens" }) : new BankFailed({ reason: String(error) }),
  })
  if (response.status >= 400 && response.status < 500) {
    return yield* new NothingDone({ reason: `it answered ${response.status}` })
  }
  if (response.status !== 200) return yield* new BankFailed({ reason: `it answered ${response.status}` })
  const body = yield* Effect.tryPromise({
    try: () => response.json(),
    catch: (error) => new BankFailed({ reason: String(error) }),
  })
  return yield* Schema.decodeUnknownEffect(answer)(body).pipe(
    Effect.mapError(({ message }) => new BankFailed({ reason: message })),
  )
})

/** Whether no connection came about, so that the bank heard of nothing. */
const isRefused = (error: unknown): boolean =>
  error instanceof Error &&
  typeof error.cause === "object" &&
  error.cause !== null &&
  "code" in error.cause &&
  error.cause.code === "ECONNREFUSED"
