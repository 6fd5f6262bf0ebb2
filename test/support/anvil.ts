import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createRequire } from "node:module"
import { createInterface } from "node:readline"
import { Effect, type Scope } from "effect"
import { type Address, createTestClient, type Hex, http, publicActions, walletActions } from "viem"
import { foundry } from "viem/chains"
import { EMITTER_BYTECODE, emitterCall } from "./emitter.ts"

const require = createRequire(import.meta.url)

const BINARY = `@foundry-rs/anvil-${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}/bin/anvil`

/** The first account that anvil knows and has funded. */
export const ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

const client = (url: string) =>
  createTestClient({ mode: "anvil", chain: foundry, transport: http(url, { retryCount: 0 }), cacheTime: 0 })
    .extend(publicActions)
    .extend(walletActions)

/** A log that the emitter contract shall write. */
export interface EmittedLog {
  readonly topics: ReadonlyArray<Hex>
  readonly data: Hex
}

/** A transaction that shall be mined. */
export interface SentTransaction {
  readonly to: Address | null
  readonly data?: Hex
  readonly value?: bigint
}

/** A real node with a chain of its own. */
export class Anvil {
  readonly url: string
  readonly client: ReturnType<typeof client>
  readonly #process: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.url = url
    this.client = client(url)
    this.#process = child
  }

  static async start(args: ReadonlyArray<string> = []): Promise<Anvil> {
    const child = spawn(require.resolve(BINARY), ["--host", "127.0.0.1", "--port", "0", ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    const lines = createInterface({ input: child.stdout })
    for await (const line of lines) {
      const address = /^Listening on (\S+)$/.exec(line)?.[1]
      if (address === undefined) continue
      child.stdout.resume()
      return new Anvil(`http://${address}`, child)
    }
    throw new Error("anvil ended before it listened")
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exited = once(this.#process, "exit")
    this.#process.kill("SIGKILL")
    await exited
  }

  /** Adds empty blocks. */
  async mine(blocks: number): Promise<void> {
    await this.client.mine({ blocks })
  }

  /** Deploys the contract that writes the logs that it is told to; answers its address. */
  async deployEmitter(): Promise<Address> {
    const hash = await this.client.sendTransaction({ account: ACCOUNT, data: EMITTER_BYTECODE })
    const receipt = await this.client.waitForTransactionReceipt({ hash, pollingInterval: 20 })
    return receipt.contractAddress!
  }

  /** Writes logs, each in a transaction of its own, all in one new block; answers its number. */
  async emit(emitter: Address, logs: ReadonlyArray<EmittedLog>): Promise<number> {
    await this.client.setAutomine(false)
    for (const log of logs)
      await this.client.sendTransaction({ account: ACCOUNT, to: emitter, data: emitterCall(log), gas: 200_000n })
    await this.client.mine({ blocks: 1 })
    await this.client.setAutomine(true)
    return Number(await this.client.getBlockNumber())
  }

  /** Sends transactions from the first account, all in one new block; answers its number. */
  async send(transactions: ReadonlyArray<SentTransaction>): Promise<number> {
    await this.client.setAutomine(false)
    for (const { to, data, value } of transactions)
      await this.client.sendTransaction({
        account: ACCOUNT,
        gas: 300_000n,
        ...(to === null ? {} : { to }),
        ...(data === undefined ? {} : { data }),
        ...(value === undefined ? {} : { value }),
      } as Parameters<typeof this.client.sendTransaction>[0])
    await this.client.mine({ blocks: 1 })
    await this.client.setAutomine(true)
    return Number(await this.client.getBlockNumber())
  }

  /** Replaces the newest blocks by empty ones. */
  async reorg(depth: number): Promise<void> {
    await this.client.request<any>({ method: "anvil_reorg", params: [depth, []] } as any)
  }
}

/** Starts a node that ends with the scope. */
export const anvil = (args: ReadonlyArray<string> = []): Effect.Effect<Anvil, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => Anvil.start(args)),
    (node) => Effect.promise(() => node.stop()),
  )
