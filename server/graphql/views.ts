import { type Context, Effect } from "effect"
import { type MonitorView, type NetworkView, Resources, type SinkView } from "../../core/engine/resources.ts"
import type { StorageError } from "../../core/storage/error.ts"
import type { Services } from "./context.ts"
import { run } from "./run.ts"

/**
 * The resources as one operation sees them, each list read at most once, so that a nested query (the monitors of every
 * network, the sinks of every monitor) costs three reads whatever its size.
 */
export class Views {
  readonly #services: Context.Context<Services>
  #networks: Promise<ReadonlyArray<NetworkView>> | undefined
  #monitors: Promise<ReadonlyArray<MonitorView>> | undefined
  #sinks: Promise<ReadonlyArray<SinkView>> | undefined

  constructor(services: Context.Context<Services>) {
    this.#services = services
  }

  get networks(): Promise<ReadonlyArray<NetworkView>> {
    return (this.#networks ??= this.#read((resources) => resources.networks))
  }

  get monitors(): Promise<ReadonlyArray<MonitorView>> {
    return (this.#monitors ??= this.#read((resources) => resources.monitors))
  }

  get sinks(): Promise<ReadonlyArray<SinkView>> {
    return (this.#sinks ??= this.#read((resources) => resources.sinks))
  }

  /** Forgets what was read: a mutation is about to change it. */
  forget(): void {
    this.#networks = this.#monitors = this.#sinks = undefined
  }

  #read<A>(select: (resources: Resources["Service"]) => Effect.Effect<A, StorageError>): Promise<A> {
    return run({ services: this.#services }, Effect.flatMap(Resources, select))
  }
}
