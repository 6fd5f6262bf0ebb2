import { Effect } from "effect"
import { NotOwner, type StaleResources, type StorageError } from "../storage/error.ts"
import type { Storage } from "../storage/storage.ts"
import type { ResourceChanges } from "../storage/stored.ts"
import type { Catalog } from "./catalog.ts"
import { Conflict, type NotFound } from "./error.ts"
import type { SinkRegistry } from "./sink-registry.ts"
import type { Stopped, Supervisors } from "./supervisors.ts"

type Fault = Conflict | NotOwner | StaleResources | StorageError

/** What must hold of a network that is to be deleted. */
export interface NetworkCheck {
  readonly exists: Effect.Effect<unknown, NotFound>
  /** Fails while a monitor names it. */
  readonly unnamed: Effect.Effect<void, Conflict>
}

/** Removes resources with what is owed for them: while nothing that runs goes on with rows that are taken away. */
export interface Deletions {
  /** To be called within `exclusively`. */
  readonly deleteMonitor: (id: string, discard: boolean) => Effect.Effect<void, Fault>
  /** To be called within `exclusively`. */
  readonly deleteSink: (id: string, discard: boolean) => Effect.Effect<void, Fault>
  /** Drains the network and removes it with all its rows; not to be called within `exclusively`. */
  readonly deleteNetwork: (
    id: string,
    check: NetworkCheck,
    discard: boolean,
  ) => Effect.Effect<void, Exclude<Fault, StaleResources> | NotFound>
}

const unfinished = (id: string) =>
  Effect.fail(
    new Conflict({
      reason: `network "${id}" is not deleted: not all that it takes back is told yet; delete it again`,
    }),
  )

export const makeDeletions = (options: {
  readonly storage: Storage["Service"]
  readonly catalog: Catalog
  readonly sinks: SinkRegistry
  readonly supervisors: Supervisors
  /** Stores a change on top of what is known here. */
  readonly change: (changes: ResourceChanges) => Effect.Effect<unknown, StaleResources | StorageError>
  /** Runs a check and its change without another one in between. */
  readonly exclusively: <A, E>(
    change: Effect.Effect<A, E>,
  ) => Effect.Effect<A, Exclude<E, StaleResources> | Conflict | StorageError>
  /** Runs what cannot be refused in its turn among the changes. */
  readonly inTurn: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}): Deletions => {
  const { storage, catalog, sinks, supervisors, change, exclusively, inTurn } = options
  const { refresh, between, ownedHere } = supervisors

  /** Fails while rows are owed or dead letters kept, unless they are to be discarded. */
  const owesNothing = Effect.fnUntraced(function* (
    label: string,
    by: Parameters<Storage["Service"]["debts"]>[0],
    discard: boolean,
  ) {
    const { owed, dead, actions } = yield* storage.debts(by)
    if (discard || owed + dead + actions === 0) return
    const debts = [
      ...(owed > 0 ? [`owes ${owed} deliveries`] : []),
      ...(dead > 0 ? [`keeps ${dead} dead letters`] : []),
      ...(actions > 0 ? [`has ${actions} deliveries to actions that are not over`] : []),
    ]
    const still = by.monitor === undefined ? "" : " (retractions that it owes are sent all the same)"
    const reason = `${label} still ${debts.join(" and ")}; delete it with discard: true to give them up${still}`
    return yield* new Conflict({ reason })
  })

  /** Fails while a network has something to take back: who heard of it must hear of that first. */
  const nothingTakenBack = Effect.fnUntraced(function* (id: string) {
    if ((yield* storage.invalidation(id)) !== null) return yield* unfinished(id)
    for (const sink of yield* storage.owedSinks(id)) {
      const owed = yield* storage.owed(id, sink, { kind: "retracted", afterSeq: 0, limit: 1 })
      if (owed.length > 0) return yield* unfinished(id)
    }
  })

  const deleteMonitor = Effect.fnUntraced(function* (id: string, discard: boolean) {
    const network = catalog.monitors.get(id)?.stored.definition.network
    const label = `monitor "${id}"`
    if (network === undefined || !discard) {
      yield* owesNothing(label, { monitor: id }, discard)
      yield* change({ deleteMonitors: [id] })
    } else {
      yield* ownedHere(network)
      // One that was starting may know only now that another runs the network.
      const remove = Effect.suspend(() => change({ deleteMonitors: [id], discard: [{ monitor: id }] }))
      yield* between([network], Effect.andThen(ownedHere(network), remove))
    }
    catalog.monitors.delete(id)
    if (network !== undefined) yield* refresh([network])
  })

  const deleteSink = Effect.fnUntraced(function* (id: string, discard: boolean) {
    // A batch that was matched before its monitor let go of the sink may be minted until the pipelines rest.
    const remove = Effect.gen(function* () {
      yield* owesNothing(`sink "${id}"`, { sink: id }, discard)
      for (const network of supervisors.networks()) {
        const { owed, dead } = yield* storage.debts({ network, sink: id })
        if (owed + dead > 0) yield* ownedHere(network)
      }
      yield* change({ deleteSinks: [id], ...(discard ? { discard: [{ sink: id }] } : {}) })
    })
    yield* between(supervisors.networks(), remove)
    yield* sinks.remove(id)
  })

  const deleteNetwork = (id: string, { exists, unnamed }: NetworkCheck, discard: boolean) => {
    const owes = owesNothing(`network "${id}"`, { network: id }, discard)
    const begin = exclusively(
      Effect.andThen(
        Effect.all([exists, unnamed, ownedHere(id), owes], { discard: true }),
        Effect.sync(() => catalog.deleting.add(id)),
      ),
    )
    const remove = Effect.fnUntraced(function* ({ finished, heldBy }: Stopped) {
      // One that was starting may know only now that another runs it.
      if (heldBy !== null) return yield* new NotOwner({ network: id, holder: heldBy })
      if (!finished) return yield* unfinished(id)
      yield* exclusively(
        // Another may have put a monitor on it.
        Effect.all([unnamed, owes, nothingTakenBack(id)], { discard: true }).pipe(
          Effect.andThen(Effect.suspend(() => change({ deleteNetworks: [id] }))),
          Effect.andThen(Effect.sync(() => catalog.networks.delete(id))),
        ),
      )
    })
    const end = Effect.suspend(() => {
      catalog.deleting.delete(id)
      // A network that still exists runs on as if nothing had been asked.
      return refresh([id])
    })
    // Others make their changes while it drains. What the chain took back before is still told to those who heard of it.
    return Effect.uninterruptible(
      begin.pipe(
        Effect.andThen(supervisors.stop(id, "finish")),
        Effect.flatMap((stopped) => Effect.ensuring(remove(stopped), inTurn(end))),
        Effect.asVoid,
      ),
    )
  }

  return { deleteMonitor, deleteSink, deleteNetwork }
}
