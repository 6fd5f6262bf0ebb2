import { Effect } from "effect"
import type { InterestSet } from "../../../core/plugin/source.ts"
import { Factories } from "./factories.ts"
import { compileLogs, type LogRouting } from "./log-routing.ts"
import { readSelector, type Selector, type Watched } from "./selector.ts"
import type { WatchedFactory } from "./selectors/factory.ts"
import { TransactionRouting } from "./transaction-routing.ts"

/** How much of each block the interests need beside its logs. */
export type BlockNeed = "nothing" | "headers" | "transactions"

/** An interest whose selector was understood. */
interface WatchedInterest {
  readonly id: string
  readonly watched: Watched
}

/** The interests of one version, compiled. */
export class Routing {
  readonly version: number
  readonly logs: LogRouting
  readonly transactions: TransactionRouting
  /** The interests in blocks. */
  readonly blocks: ReadonlyArray<string>
  /** Interests that are left out until the past of their factory is known, with what they wait for. */
  readonly pending: ReadonlyMap<string, string>

  constructor(version: number, read: ReadonlyArray<WatchedInterest>, factories: Factories = new Factories()) {
    this.version = version
    const ofKind = <Kind extends Watched["kind"]>(kind: Kind) =>
      read.filter(
        (one): one is WatchedInterest & { readonly watched: Extract<Watched, { kind: Kind }> } =>
          one.watched.kind === kind,
      )
    const [events, calls] = [ofKind("event"), ofKind("call")]
    const made = [...events, ...calls].flatMap(({ id, watched: { factory } }) =>
      factory === null ? [] : [{ id, factory }],
    )
    factories.use(made.map(({ factory }) => factory))
    this.pending = new Map(
      made.flatMap(({ id, factory }) => (factories.of(factory).followed ? [] : [[id, waitsFor(factory)]])),
    )
    const isReady = ({ id }: WatchedInterest) => !this.pending.has(id)
    const followed = made.filter(({ id }) => !this.pending.has(id)).map(({ factory }) => factory)
    this.logs = compileLogs(events.filter(isReady), followed, factories)
    this.transactions = new TransactionRouting(
      calls.filter(isReady).map(({ id, watched }) => ({
        id,
        watched,
        children: watched.factory === null ? null : factories.of(watched.factory),
      })),
      ofKind("transaction"),
    )
    this.blocks = ofKind("block").map(({ id }) => id)
  }

  /** Compiles the interests of a version. */
  static of({ version, interests }: InterestSet<Selector>, factories?: Factories): Routing {
    const read = interests.flatMap(({ id, selector }) => {
      const watched = readSelector(selector)
      return "problems" in watched ? [] : [{ id, watched }]
    })
    return new Routing(version, read, factories)
  }

  get need(): BlockNeed {
    if (!this.transactions.isEmpty) return "transactions"
    return this.blocks.length > 0 ? "headers" : "nothing"
  }

  /** The same as nodes are to be asked now, when factories may have made more than was known before. */
  refreshed(): Routing {
    const logs = this.logs.refreshed()
    if (logs === this.logs) return this
    return Object.assign(Object.create(Routing.prototype) as Routing, this, { logs })
  }
}

const waitsFor = ({ addresses }: WatchedFactory): string =>
  `waits until the contracts that the factory ${addresses.join(", ")} has made before are known`

/** The compiled interests of the version that is current when it is read, as nodes are to be asked now. */
export const routingOf = (
  interests: Effect.Effect<InterestSet<Selector>>,
  factories: Factories,
): Effect.Effect<Routing> => {
  let compiled: Routing | undefined
  let unknown = 0
  return Effect.map(interests, (set) => {
    // A factory whose past became known makes interests of the same version ready.
    if (compiled?.version === set.version && factories.unknown.length === unknown) compiled = compiled.refreshed()
    else compiled = Routing.of(set, factories)
    unknown = factories.unknown.length
    return compiled
  })
}
