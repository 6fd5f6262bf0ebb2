import { Clock, Deferred, Effect, type Scope } from "effect"
import { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import { type SimulatedNode, simulatedNode } from "../../server/devnet/simulated/node.ts"
import type { ChainView } from "../../server/devnet/simulated/view.ts"
import { rpcFault } from "./faults.ts"
import type { Learned } from "./late-finds.ts"
import type { Life } from "./life.ts"
import { hasLedger, withLedger } from "./ledger.ts"
import { calm, type Moods } from "./moods.ts"
import type { Mutant } from "./mutants.ts"
import { Points } from "./points.ts"
import { Random } from "../../server/devnet/simulated/random.ts"
import { lineupOf, Providers } from "./providers.ts"
import { type Member, type LogPlace, Receiver } from "./receivers.ts"
import { CHANGING_SINK, type MonitorSetup, MONITORS, PROVIDER_MONITORS, SINKS } from "./setup.ts"
import { TakenBack } from "./taken-back.ts"

interface Place {
  readonly primary: number
  readonly secondary: number
}

const isAtOrBefore = (a: Place, b: Place): boolean =>
  a.primary < b.primary || (a.primary === b.primary && a.secondary <= b.secondary)

/** The secondary of log 0. */
const FIRST_LOG = 2 ** 20

/** Everything around the runtimes of one simulation, and what is known of them. */
export class World {
  readonly seed: number
  readonly path: string
  readonly chain: SimulatedChain
  readonly nodes: ReadonlyArray<SimulatedNode>
  /** What makes the nodes fail and lie; null in a world with a single node. */
  readonly providers: Providers | null
  /** Those that stay as they are: what each sink must hold of them is known. */
  readonly monitors: ReadonlyArray<MonitorSetup>
  /** Whether an action keeps a table of what stands. */
  readonly hasLedger: boolean
  /** Monitors that have a gate. */
  readonly gated: ReadonlySet<string>
  readonly takenBack: TakenBack
  readonly mutant: Mutant | null
  readonly points = new Points()
  readonly receivers: ReadonlyMap<string, Receiver>
  readonly violations: Array<string> = []
  readonly #shown = Deferred.makeUnsafe<void>()
  /** The broken rule has shown itself. */
  readonly shown: Effect.Effect<void> = Deferred.await(this.#shown)
  readonly lives: Array<Life> = []
  readonly holders = new Map<string, Life>()
  readonly forks: Array<ChainView> = []
  moods: Moods = calm
  /** What the runtime was last seen to show, where only that tells what its gates let through. */
  learned: Learned | null = null
  /** Who may claim the network whoever holds it. */
  preferred: Life | null = null
  /** Who claimed it last. */
  owner: Life | null = null
  /** How far the chain was minted. */
  minted = 0
  /** Sinks whose receiver answers that it is gone. */
  readonly gone = new Set<string>()
  /** Hits of which an operator gave up the letter, as `<sink> <key>`: whether they are held is not known. */
  readonly discarded = new Set<string>()
  readonly #letters = new Set<string>()
  #checkpoint: Place | null = null
  #rewoundAt = 0
  readonly #trace: ((text: string) => void) | null
  readonly #startedAt = performance.now()

  constructor(options: {
    readonly seed: number
    readonly path: string
    readonly nodes: ReadonlyArray<SimulatedNode>
    readonly chain: SimulatedChain
    readonly mutant: Mutant | null
    readonly trace: ((text: string) => void) | null
  }) {
    const { seed, path, nodes, chain, mutant, trace } = options
    this.seed = seed
    this.path = path
    this.nodes = nodes
    this.chain = chain
    this.mutant = mutant
    this.#trace = trace
    const lineup = lineupOf(seed)
    this.providers =
      lineup === null ? null : new Providers({ seed, lineup, chain, nodes, log: (text) => this.log(text) })
    const monitors = lineup === null ? MONITORS : PROVIDER_MONITORS
    this.hasLedger = hasLedger(seed)
    this.monitors = this.hasLedger ? withLedger(monitors) : monitors
    this.gated = new Set(this.monitors.filter(({ gate }) => gate !== null).map(({ id }) => id))
    this.takenBack = new TakenBack(chain)
    if (lineup === null) {
      const random = new Random(seed, "rpc")
      for (const node of nodes) node.fault = () => rpcFault(this.moods, random)
    }
    this.receivers = new Map(
      [...SINKS, CHANGING_SINK].map((setup) => [setup.id, new Receiver(setup, this, (text) => this.violation(text))]),
    )
  }

  /** Whether some fork holds both blocks: one of the chain's, or one that a node invented. */
  areOnOneFork(hash: string, other: string): boolean {
    return this.chain.areOnOneFork(hash, other) || (this.providers?.areOnOneInventedFork(hash, other) ?? false)
  }

  /** Whether a match of a log may be told late: in no order with others, and behind checkpoints. */
  mayBeLate({ hash, index }: LogPlace): boolean {
    return this.providers?.mayBeLate(hash, index) ?? false
  }

  /** Whether a log may never be found. */
  mayBeMissing({ hash, index }: LogPlace): boolean {
    return this.providers?.mayBeMissing(hash, index) ?? false
  }

  get hasLateFinds(): boolean {
    return this.providers?.lineup.audit ?? false
  }

  /** Whether there was a reason to take back what a block held. */
  mayBeTakenBack(place: LogPlace): boolean {
    const isInvented = this.chain.byHash(place.hash) === undefined
    return isInvented || this.takenBack.has(place) || this.#isContested(place.block, place.block)
  }

  /** Whether blocks of such numbers may have been taken back. */
  wereTakenBack(from: number, to: number): boolean {
    return this.takenBack.hasAny(from, to) || this.#isContested(from, to)
  }

  #isContested(from: number, to: number): boolean {
    return this.providers?.isContested(from, to) ?? false
  }

  /** A match of a log was told. */
  heard({ hash, index }: LogPlace): void {
    this.providers?.heard(hash, index)
  }

  get isTraced(): boolean {
    return this.#trace !== null
  }

  log(text: string): void {
    this.#trace?.(`${(performance.now() - this.#startedAt).toFixed(1).padStart(8)} ${text}`)
  }

  violation(text: string): void {
    this.log(`VIOLATION ${text}`)
    this.violations.push(text)
    if (this.mutant?.shows.test(text)) Deferred.doneUnsafe(this.#shown, Effect.void)
  }

  /** A match died at a sink: it may be sent again whenever someone asks, and whenever a runtime starts in the middle. */
  addLetter(sink: string, match: string): void {
    this.#letters.add(`${sink} ${match}`)
  }

  isLetter(sink: string, match: string): boolean {
    return this.#letters.has(`${sink} ${match}`)
  }

  /** A checkpoint as the runtime shows it. */
  seeCheckpoint(cursor: Place, updatedAt: number): void {
    if (updatedAt <= this.#rewoundAt) return
    if (this.#checkpoint !== null && !isAtOrBefore(this.#checkpoint, cursor)) {
      this.violation(
        `the checkpoint went back from ${JSON.stringify(this.#checkpoint)} to ${JSON.stringify(cursor)} by itself`,
      )
    }
    this.#checkpoint = cursor
  }

  /** What was shown of the checkpoint no longer counts: it is moved back. */
  readonly rewinding: Effect.Effect<void> = Effect.map(Clock.currentTimeMillis, (now) => {
    this.#checkpoint = null
    this.#rewoundAt = now
  })

  /** An attempt to deliver matches: nothing is sent that a checkpoint, as it was shown, has covered. */
  checkCovered(receiver: Receiver, members: ReadonlyArray<Member>): void {
    const checkpoint = this.#checkpoint
    const { id, holdsCheckpoint } = receiver.setup
    if (checkpoint === null || !holdsCheckpoint) return
    for (const member of members) {
      const { id: match, block, index, monitor } = member
      if (this.gated.has(monitor) || this.isLetter(id, match) || this.mayBeLate(member)) continue
      const place = { primary: block, secondary: FIRST_LOG + index }
      if (!isAtOrBefore(place, checkpoint)) continue
      this.violation(`${id}: ${monitor} ${block}:${index} is sent, behind the checkpoint ${JSON.stringify(checkpoint)}`)
    }
  }
}

/** A chain with its nodes, and receivers; nothing runs yet. */
export const makeWorld = (options: {
  readonly seed: number
  readonly path: string
  readonly mutant: Mutant | null
  readonly trace: ((text: string) => void) | null
}): Effect.Effect<World, never, Scope.Scope> =>
  Effect.gen(function* () {
    const chain = new SimulatedChain({ seed: `${options.seed}` })
    const nodes = yield* Effect.forEach(Array(lineupOf(options.seed)?.nodes ?? 1).keys(), () => simulatedNode(chain))
    return new World({ ...options, chain, nodes })
  })
