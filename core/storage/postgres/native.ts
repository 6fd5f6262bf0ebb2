import type { Socket } from "node:net"

/** A value that can be bound. */
export type Value = string | number | null | ReadonlyArray<string | number | null>

/** Turns what the server sent into values: every integer, also one of 64 bits, is a number. */
export interface TypeParsers {
  readonly getTypeParser: (oid: number) => (text: string) => unknown
}

export interface NativeQuery {
  readonly text: string
  readonly values?: Array<Value>
  /** Prepares the statement under this name, once a connection. */
  readonly name?: string
  readonly rowMode?: "array"
  readonly types?: TypeParsers
}

export interface NativeResult {
  readonly rows: Array<unknown>
  readonly rowCount: number | null
}

/** The part of the driver's connections that is used. */
export interface NativeClient {
  readonly connection: { readonly stream: Socket }
  /** Answers a result for each statement when there are several. */
  query(query: NativeQuery): Promise<NativeResult | ReadonlyArray<NativeResult>>
  on(event: "error" | "end", listener: (error?: Error) => void): unknown
  on(event: "notification", listener: (message: { readonly payload?: string }) => void): unknown
}

export interface PooledClient extends NativeClient {
  /** Hands it back, or closes it for good. */
  release(destroy?: boolean): void
}

/** A connection of its own. */
export interface OwnClient extends NativeClient {
  connect(): Promise<unknown>
  end(): Promise<void>
}

/** The part of the driver's pools that is used. */
export interface NativePool {
  readonly Client: new (options: object) => OwnClient
  connect(): Promise<PooledClient>
}

const INT8 = 20
const INT4 = 23
const NUMERIC = 1700

const asText = (text: string): string => text

/** For statements of the hot path; MikroORM has its own. */
export const types: TypeParsers = {
  getTypeParser: (oid) => (oid === INT8 || oid === INT4 || oid === NUMERIC ? Number : asText),
}
