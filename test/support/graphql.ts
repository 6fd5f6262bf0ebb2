import { type Client, createClient } from "graphql-ws"
import { WebSocket } from "ws"

export interface GraphqlError {
  readonly message: string
  readonly path?: ReadonlyArray<string | number>
  readonly extensions?: {
    readonly code?: string
    readonly oldest?: string
    readonly reference?: string
    readonly problems?: ReadonlyArray<{ readonly path: string; readonly message: string }>
  }
}

export interface GraphqlResult<Data> {
  readonly status: number
  readonly data: Data | null | undefined
  readonly errors: ReadonlyArray<GraphqlError>
}

/** Sends one operation over HTTP. */
export const graphql = async <Data = any>(
  url: string,
  query: string,
  variables: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<GraphqlResult<Data>> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ query, variables }),
  })
  const body = (await response.json()) as { data?: Data; errors?: ReadonlyArray<GraphqlError> }
  return { status: response.status, data: body.data, errors: body.errors ?? [] }
}

/** Sends one operation over HTTP and answers its data; throws if there are errors. */
export const graphqlData = async <Data = any>(
  url: string,
  query: string,
  variables: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Data> => {
  const result = await graphql<Data>(url, query, variables, headers)
  if (result.errors.length > 0) throw new Error(JSON.stringify(result.errors))
  return result.data as Data
}

/** A client for graphql-transport-ws, which does not reconnect. */
export const webSocketClient = (
  url: string,
  options: {
    readonly connectionParams?: Readonly<Record<string, unknown>>
    readonly headers?: Readonly<Record<string, string>>
    readonly onClose?: (code: number) => void
  } = {},
): Client =>
  createClient({
    url: url.replace(/^http/, "ws"),
    webSocketImpl: class extends WebSocket {
      constructor(address: string, protocols: string) {
        super(address, protocols, { headers: options.headers ?? {} })
      }
    },
    retryAttempts: 0,
    ...(options.connectionParams === undefined ? {} : { connectionParams: { ...options.connectionParams } }),
    ...(options.onClose === undefined
      ? {}
      : { on: { closed: (event) => options.onClose?.((event as { code: number }).code) } }),
  })

/** A running subscription over WebSocket. */
export interface Subscription<Data> {
  /** The next item; throws with the errors of the operation, or if it ended. */
  readonly next: () => Promise<Data>
  /** Ends it and closes the connection. */
  readonly close: () => Promise<void>
}

/** Subscribes over a WebSocket of its own. */
export const subscribe = <Data = any>(
  url: string,
  query: string,
  variables: Readonly<Record<string, unknown>> = {},
  options: Parameters<typeof webSocketClient>[1] = {},
): Subscription<Data> => {
  const client = webSocketClient(url, options)
  const items = client.iterate<Data>({ query, variables })
  return {
    next: async () => {
      const { value, done } = await items.next()
      if (done === true) throw new Error("the subscription ended")
      if (value.errors !== undefined) throw value.errors
      return value.data as Data
    },
    close: async () => {
      await items.return?.(undefined)
      await client.dispose()
    },
  }
}
