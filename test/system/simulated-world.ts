import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { graphql, graphqlData } from "../support/graphql.ts"
import { consumerFaults } from "../support/consumer-faults.ts"
import { accepted, deliveriesAt, type Delivery, heldAfter, heldFaults, type Place } from "../support/consumer.ts"
import { temporaryFolder, waitFor, writeFiles } from "../support/process.ts"
import { startReceiver } from "../support/receiver.ts"
import { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../server/devnet/simulated/node.ts"
import { addressOf, transfer, TRANSFER } from "../../server/devnet/simulated/transfer.ts"
import type { LogSpec } from "../../server/devnet/simulated/view.ts"
import { checkpointOf, networkNow } from "./network.ts"

/** Where the two sinks deliver to. */
export const PATHS = ["/one", "/two"] as const

const TOKEN = 1

/** One to three transfers, by the block's number; those of another `branch` differ in every other block. */
export const transfers =
  (branch = 0) =>
  (block: number): ReadonlyArray<LogSpec> =>
    Array.from({ length: 1 + (block % 3) }, (_, i) =>
      transfer(TOKEN, 2, 3, block * 10 + i + (block % 2 === 0 ? 0 : branch * 10_000)),
    )

/** A sink as a seed file or an input of GraphQL. */
export const sinkOf = (origin: string, path: string, timeoutMs = 2_000) => ({
  id: path.slice(1),
  module: "webhook",
  config: { url: `${origin}${path}`, timeout_ms: timeoutMs },
})

const RETRY = { max_attempts: 1_000, initial_backoff_ms: 10, max_backoff_ms: 50 }

interface Page {
  readonly edges: ReadonlyArray<{ readonly node: { readonly id: string } }>
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null }
}

const SHOWN = `query ($after: String) { matches(network: "net", first: 1000, after: $after) {
  edges { node { id } } pageInfo { hasNextPage endCursor } } }`

/** A simulated chain that is watched from block 1 on, a receiver, and what a server needs to carry one to the other. */
export const setUpWorld = Effect.fnUntraced(function* (databaseUrl?: string) {
  const folder = yield* temporaryFolder
  const chain = new SimulatedChain()
  const node = yield* simulatedNode(chain)
  const receiver = yield* startReceiver()
  yield* writeFiles(folder, {
    "networks/net.json": {
      id: "net",
      module: "evm-rpc",
      config: { chain_id: 1, urls: [node.url], confirmations: 0, start: 1, poll_interval_ms: 20 },
    },
    "monitors/all.json": {
      id: "all",
      network: "net",
      selector: { kind: "event", address: [addressOf(TOKEN)], event: TRANSFER },
      sinks: PATHS.map((path) => path.slice(1)),
    },
    ...Object.fromEntries(
      PATHS.map((path) => [`sinks${path}.json`, { ...sinkOf(receiver.origin, path), retry: RETRY }]),
    ),
  })
  const variables = {
    DATABASE_URL: databaseUrl ?? `sqlite:${folder}/rows.db`,
    SEEDS_DIR: folder,
    JOURNAL_DEPTH: "100",
  }

  const canonical = (): ReadonlyArray<Place> =>
    chain.canonicalLogs(1).map(({ block, hash, index }) => ({ monitor: "all", block, hash, index }))

  // Looked at again and again, so each delivery is read once.
  const deliveries = new Map(PATHS.map((path): [string, Array<Delivery>] => [path, []]))
  let read = 0
  const held = (path: string) => {
    const fresh = accepted(receiver.requests.slice(read))
    read = receiver.requests.length
    for (const [path, known] of deliveries) known.push(...deliveriesAt(fresh, path))
    return heldAfter(deliveries.get(path)!)
  }

  const missing = () => PATHS.flatMap((path) => heldFaults(held(path), canonical()).map((fault) => `${path}: ${fault}`))

  /** Waits until both sinks hold what is canonical, and the network is finished with the newest block. */
  const caughtUp = Effect.fnUntraced(function* (url: string) {
    yield* waitFor("the sinks hold what is canonical", Effect.sync(missing), (faults) => faults.length === 0)
    yield* waitFor("the network is finished", networkNow(url, "net"), (network) => {
      return checkpointOf(network) >= chain.head.number && network.inFlightEvents === 0
    })
  })

  /** What the feed shows that no retraction took back. */
  const shown = Effect.fnUntraced(function* (url: string) {
    const ids: Array<string> = []
    for (let after: string | null = null; ;) {
      const { matches }: { matches: Page } = yield* Effect.promise(() => graphqlData(url, SHOWN, { after }))
      ids.push(...matches.edges.map(({ node }) => node.id))
      if (!matches.pageInfo.hasNextPage) return ids
      after = matches.pageInfo.endCursor
    }
  })

  return {
    folder,
    chain,
    node,
    receiver,
    variables,
    caughtUp,
    /** Waits until nothing is left to do, and compares what the feed shows with what is canonical. */
    settled: Effect.fnUntraced(function* (url: string) {
      yield* caughtUp(url)
      assert.sameMembers(yield* shown(url), [...held(PATHS[0]).keys()])
    }),
    /** Everything that is wrong with what was received, once the server is stopped. */
    faults: () => {
      const expected = { canonical: canonical(), areOnOneFork: chain.areOnOneFork.bind(chain) }
      return PATHS.flatMap((path) => consumerFaults(receiver.requests, path, expected).map((it) => `${path}: ${it}`))
    },
  }
})

export type World = Effect.Success<ReturnType<typeof setUpWorld>>

/** Carries out a mutation; one that is refused because the network does not run yet is tried again. */
export const mutate = (url: string, mutation: string, variables: Readonly<Record<string, unknown>> = {}) =>
  waitFor(
    mutation,
    Effect.promise(() => graphql(url, mutation, variables)),
    ({ errors }) => errors.length === 0,
  )

export const PAUSE = `mutation { pauseNetwork(id: "net") { id } }`
export const RESUME = `mutation { resumeNetwork(id: "net") { id } }`
export const REWIND = `mutation ($to: CursorInput!) { rewindNetwork(id: "net", to: $to) { id } }`
export const PUT_SINK = `mutation ($input: SinkInput!) { putSink(input: $input) { id } }`
export const PUT_NETWORK = `mutation ($input: NetworkInput!) { putNetwork(input: $input) { id } }`

/** Takes back everything behind a block, as an operator does. */
export const rewindTo = (url: string, block: number) => mutate(url, REWIND, { to: { primary: `${block}` } })
