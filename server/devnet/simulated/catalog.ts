import type { NodeFault } from "./fault.ts"
import { SimulatedChain } from "./chain.ts"
import * as chain from "./faults/chain.ts"
import * as limits from "./faults/limits.ts"
import * as logs from "./faults/logs.ts"
import * as shapes from "./faults/shapes.ts"
import * as sockets from "./faults/sockets.ts"
import * as transport from "./faults/transport.ts"
import type { Random } from "./random.ts"

/** A kind of fault that a plan can choose. */
export interface FaultKind {
  /** Its size is chosen by `random`. */
  readonly make: (random: Random) => NodeFault
  /**
   * Whether what is watched comes out right all the same, as long as another node is well: the fault shows in the answers
   * themselves, in the blooms of blocks near the head, or beside what others answer. What cannot show is a hidden lie.
   */
  readonly isFound: boolean
}

const found = (make: FaultKind["make"]): FaultKind => ({ make, isFound: true })
const hidden = (make: FaultKind["make"]): FaultKind => ({ make, isFound: false })

const seedOf = (random: Random): number => random.between(0, 1_000_000)

/** Every kind of fault that a node can have while it runs. */
export const FAULT_KINDS: ReadonlyArray<FaultKind> = [
  found((random) => logs.omitsLogs(seedOf(random), 0.3 + 0.5 * random.next())),
  found(logs.emptyLogs),
  found(logs.zeroBlooms),
  found(logs.fullBlooms),
  found((random) => logs.logsWithoutTransaction(random.pick(["null", "zero", "left out"]))),
  found(logs.duplicateLogs),
  found(logs.logsInDisorder),
  found(logs.contradictingLogs),
  found(logs.removedLogs),
  found(logs.logsOfOtherBlock),
  found(logs.logsOutside),
  hidden(logs.alteredLogs),
  found((random) => chain.staysBehind(random.pick([1, 5, 25]))),
  found(chain.standsStill),
  found((random) => chain.twoMachines(random.pick([1, 5, 25]))),
  found((random) => chain.headJumps(random.between(2, 4))),
  found((random) => chain.headFlickers(random.between(1, 3))),
  found((random) => chain.inventedHead(random.pick([1, 100, 100_000]))),
  found(chain.unknownHashes),
  found((random) => chain.otherHashes(seedOf(random))),
  found((random) => chain.ownFork(seedOf(random), random.between(1, 4))),
  found((random) => chain.otherChain(new SimulatedChain({ chainId: 7, seed: `${seedOf(random)}` }).mine(50))),
  found((random) => chain.pruned(1_000_000, random.pick(["nothing", "an error"]))),
  found((random) => chain.unknownTags(random.pick(["null", "an error"]))),
  found(() => chain.tagsGoDown()),
  found(chain.otherReceipts),
  found((random) => limits.rangeLimit(random.between(1, 20), random.pick(limits.LIMIT_MESSAGES))),
  found((random) => limits.uselessHint(random.between(1, 20))),
  found((random) => limits.resultLimit(random.between(1, 20), random.pick(limits.LIMIT_MESSAGES))),
  found((random) => limits.tooLarge(random.between(200, 2_000), random.pick(["json", "html"]))),
  found((random) => limits.tooManyRequests({ serves: random.between(0, 10), refuses: random.between(1, 10) })),
  found((random) => limits.tooManyRequests({ retryAfter: "1", serves: random.between(0, 10), refuses: 2 })),
  found(() => limits.quotaError()),
  found(limits.overloaded),
  found(transport.html),
  found(transport.empty),
  found(transport.badGateway),
  found(transport.drops),
  found(transport.hangs),
  found((random) => transport.slow(random.pick([20, 200]))),
  found(transport.cutBodies),
  found(transport.errorInBatch),
  found(transport.missingInBatch),
  found(transport.resultAndError),
  found(transport.wrongIds),
  found(transport.nullResults),
  found(transport.internalErrors),
  found(transport.noBatches),
  found((random) => transport.lacksMethod(random.pick(["eth_getLogs", "eth_getBlockReceipts", "eth_subscribe"]))),
  found(shapes.leadingZeros),
  found(shapes.missingFields),
  found(shapes.unknownTypes),
  found(shapes.upperCase),
  found(sockets.refusesSockets),
  found(sockets.hangingSockets),
  found(sockets.silentSockets),
  found(sockets.droppedSockets),
  found((random) => sockets.lateSockets(random.between(100, 5_000))),
  found(sockets.repeatingSockets),
  found(sockets.disorderlySockets),
  found(sockets.forgottenRemovals),
  found(sockets.repeatedRemovals),
]
