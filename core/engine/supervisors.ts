import { Effect, Exit, Scope } from "effect"
import { NotOwner } from "../storage/error.ts"
import type { Catalog } from "./catalog.ts"
import { Conflict } from "./error.ts"
import type { Ending } from "./network-condition.ts"
import type { Supervisor } from "./supervisor.ts"

/** How a network ended here. */
export interface Stopped {
  /** All that was being taken back is told. */
  readonly finished: boolean
  readonly heldBy: string | null
}

/** The supervisors of this process, one a network. */
export interface Supervisors {
  readonly networks: () => ReadonlyArray<string>
  readonly get: (network: string) => Supervisor | undefined
  /** The supervisor of a network that runs here, or waits to. */
  readonly running: (network: string) => Effect.Effect<Supervisor, Conflict>
  /** Starts the networks of the catalog; until then nothing runs. */
  readonly start: Effect.Effect<void>
  /** Lets networks look again at what concerns them; one that is new begins. */
  readonly refresh: (networks: Iterable<string>) => Effect.Effect<void>
  /** Runs a change while no pipeline of the networks runs: none mints or goes on with rows that it takes away. */
  readonly between: <A, E>(networks: ReadonlyArray<string>, change: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Ends a network here. Answers whether it got to its end, and who runs it instead. */
  readonly stop: (network: string, ending: Ending) => Effect.Effect<Stopped>
  readonly stopAll: Effect.Effect<void>
  /** No replay is begun any more: the process is about to stop. */
  readonly endReplays: Effect.Effect<void>
  readonly isHeldByOther: (network: string) => boolean
  /** Fails while another process runs the network. */
  readonly ownedHere: (network: string) => Effect.Effect<void, NotOwner>
}

/** @param scope what runs lives in it, each network in a fork of its own */
export const makeSupervisors = (
  catalog: Catalog,
  scope: Scope.Scope,
  make: (network: string, own: Scope.Scope) => Effect.Effect<Supervisor>,
): Supervisors => {
  const all = new Map<string, { readonly supervisor: Supervisor; readonly scope: Scope.Closeable }>()
  let started = false

  const begin = Effect.fnUntraced(function* (network: string) {
    const own = yield* Scope.fork(scope)
    all.set(network, { supervisor: yield* make(network, own), scope: own })
  })

  const refresh = Effect.fnUntraced(function* (networks: Iterable<string>) {
    if (!started) return
    for (const network of new Set(networks)) {
      const present = all.get(network)
      if (present !== undefined) yield* present.supervisor.refresh
      else if (catalog.networks.has(network) && !catalog.deleting.has(network)) yield* begin(network)
    }
  })

  const heldBy = (network: string): string | null => all.get(network)?.supervisor.heldBy() ?? null

  return {
    networks: () => [...all.keys()],
    get: (network) => all.get(network)?.supervisor,
    running: (network) => {
      const present = all.get(network)
      return present === undefined || catalog.deleting.has(network)
        ? Effect.fail(new Conflict({ reason: `network "${network}" does not run at present; try again` }))
        : Effect.succeed(present.supervisor)
    },
    start: Effect.suspend(() => {
      started = true
      return refresh(catalog.networks.keys())
    }),
    refresh,
    between: (networks, change) =>
      networks.reduce((inner, network) => all.get(network)?.supervisor.between(inner) ?? inner, change),
    stop: Effect.fnUntraced(function* (network: string, ending: Ending) {
      const present = all.get(network)
      // What never ran here is judged by its rows.
      if (present === undefined) return { finished: true, heldBy: null }
      const finished = yield* present.supervisor.stop(ending)
      yield* Scope.close(present.scope, Exit.void)
      all.delete(network)
      return { finished, heldBy: present.supervisor.heldBy() }
    }),
    stopAll: Effect.suspend(() => {
      // A deletion that is cut off would let its network begin again.
      started = false
      return Effect.forEach(all.values(), ({ supervisor }) => supervisor.stop("leave"), {
        concurrency: "unbounded",
        discard: true,
      })
    }),
    endReplays: Effect.suspend(() =>
      Effect.forEach(all.values(), ({ supervisor }) => supervisor.endReplays, { discard: true }),
    ),
    isHeldByOther: (network) => heldBy(network) !== null,
    ownedHere: (network) =>
      Effect.suspend(() => {
        const holder = heldBy(network)
        return holder === null ? Effect.void : Effect.fail(new NotOwner({ network, holder }))
      }),
  }
}
