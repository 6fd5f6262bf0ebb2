import { Deferred, Effect, Option, PubSub, Queue, Redacted, Schedule, type Scope, Stream } from "effect"
import { type Session, sessionOn } from "./connection.ts"
import { type QueryFailed, queryFailed } from "./error.ts"
import type { Opened } from "./open.ts"
import { clientOptions, startSession } from "./session.ts"

const CHANNEL = "blockwatcher_feed"
const KEPT = 1024
/** What grows meanwhile is told at once. */
const GATHER = "20 millis"
/** Also tells whether the connection is alive. */
const PING = "3 seconds"

const notify = `SELECT pg_notify($1, $2)`

/** The newest position of a network's feed. */
interface Grown {
  readonly network: string
  readonly position: number
}

/** What commits of any process add to the feeds, told over a connection of its own. It may leave some out. */
export interface Growth {
  /** Tells everyone, this process too, how far the feed of a network grew. */
  readonly tell: (grown: Grown) => void
  readonly told: Stream.Stream<Grown>
}

const write = ({ network, position }: Grown): string => `${position} ${network}`

const read = (payload: string): Grown => {
  const space = payload.indexOf(" ")
  return { position: Number(payload.slice(0, space)), network: payload.slice(space + 1) }
}

/**
 * Starts to listen, for the life of the scope. What is told is sent after the commit and not by it: a transaction that
 * notifies holds back every other that does until it is on disk.
 */
export const makeGrowth = Effect.fn("Storage.growth")(function* ({
  pool,
  url,
}: Opened): Effect.fn.Return<Growth, never, Scope.Scope> {
  const hub = yield* PubSub.sliding<Grown>(KEPT)
  const grown = yield* Queue.sliding<Grown>(KEPT)

  const connect = Effect.gen(function* () {
    const lost = yield* Deferred.make<never, QueryFailed>()
    const lose = (cause: unknown) => Deferred.doneUnsafe(lost, Effect.fail(queryFailed(cause)))
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => new pool.Client(clientOptions(Redacted.value(url), "rows"))),
      (made) => Effect.ignore(Effect.tryPromise(() => made.end())),
    )
    client.on("error", (error) => lose(error))
    client.on("end", () => lose(new Error("Connection terminated")))
    client.on("notification", ({ payload }) => {
      if (payload !== undefined) PubSub.publishUnsafe(hub, read(payload))
    })
    yield* Effect.tryPromise({
      try: async () => {
        await client.connect()
        await startSession(client)
      },
      catch: queryFailed,
    })
    return { session: sessionOn(client), lost: Deferred.await(lost) }
  })

  /** Sends what is waiting, the newest of each network. */
  const send = Effect.fnUntraced(function* (session: Session) {
    const first = yield* Queue.take(grown).pipe(Effect.timeoutOption(PING))
    if (Option.isNone(first)) {
      yield* session.say("SELECT 1")
      return
    }
    yield* Effect.sleep(GATHER)
    const waiting = [first.value, ...(yield* Queue.clear(grown))]
    const newest = new Map(waiting.map((one) => [one.network, one]))
    for (const one of newest.values()) yield* session.run(notify, [CHANNEL, write(one)])
  })

  yield* Effect.gen(function* () {
    const { session, lost } = yield* connect
    yield* session.say(`LISTEN ${CHANNEL}`)
    return yield* Effect.raceFirst(lost, Effect.forever(send(session)))
  }).pipe(
    Effect.scoped,
    Effect.tapError(({ reason }) => Effect.logDebug(`what the feed hears from the database is interrupted: ${reason}`)),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.forkScoped,
  )

  return {
    tell: (one) => void Queue.offerUnsafe(grown, one),
    told: Stream.fromPubSub(hub),
  }
})
