import type { MethodAnswer, View } from "./methods.ts"

/** A call that a node was sent. */
export interface RpcCall {
  readonly method: string
  readonly params: ReadonlyArray<any>
}

/** What comes in place of a response: another one over HTTP, a connection that is closed, or nothing for ever. */
export type Refusal =
  | { readonly http: { readonly status: number; readonly body: string; readonly headers?: Record<string, string> } }
  | "drop"
  | "hang"

/** One answer as it is written. */
export interface Item {
  readonly jsonrpc: "2.0"
  readonly id: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/** What a subscription sends. */
export interface Notification {
  readonly jsonrpc: "2.0"
  readonly method: "eth_subscription"
  readonly params: { readonly subscription: string; readonly result: any }
}

/** The socket that notifications go out on. */
export interface Outlet {
  readonly send: (notification: Notification, afterMs?: number) => void
  readonly close: () => void
}

/** A way in which a node fails or lies. Those of a node are applied one after the other. */
export interface NodeFault {
  /** As in the catalog. */
  readonly name: string
  /** What the node does, behind its name: "omits some logs". */
  readonly says: string
  /** What the node shows of its chain. */
  readonly view?: (view: View) => View
  /** What it answers to a call, in place of the answer or made of it. */
  readonly answer?: (call: RpcCall, view: View, answer: () => MethodAnswer) => MethodAnswer
  /** What it writes in place of the answers to a request. */
  readonly items?: (items: ReadonlyArray<Item>) => ReadonlyArray<unknown>
  /** What it does in place of sending the body that it has written; undefined to send it. */
  readonly respond?: (calls: ReadonlyArray<RpcCall>, body: string) => Refusal | undefined
  /** So long it waits before each response. */
  readonly delayMs?: number
  /** What it does with those who ask for a WebSocket: it answers HTTP 403, or nothing for ever. */
  readonly upgrade?: "refuse" | "hang"
  /** What becomes of a notification. */
  readonly push?: (notification: Notification, outlet: Outlet) => void
}

/** The view through all the faults. */
export const viewThrough = (faults: Iterable<NodeFault>, view: View): View => {
  let seen = view
  for (const fault of faults) seen = fault.view?.(seen) ?? seen
  return seen
}

/** The answer through all the faults. */
export const answerThrough = (
  faults: Iterable<NodeFault>,
  call: RpcCall,
  view: View,
  answer: () => MethodAnswer,
): MethodAnswer => {
  let given = answer
  for (const fault of faults) {
    const before = given
    if (fault.answer !== undefined) given = () => fault.answer!(call, view, before)
  }
  return given()
}

/** The way of notifications through all the faults. */
export const outletThrough = (faults: Iterable<NodeFault>, outlet: Outlet): Outlet => {
  let out = outlet
  for (const { push } of faults) {
    const next = out
    if (push !== undefined) out = { send: (notification) => push(notification, next), close: next.close }
  }
  return out
}
