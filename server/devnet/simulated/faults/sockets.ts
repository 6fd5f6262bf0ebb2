import type { NodeFault, Notification } from "../fault.ts"

export const refusesSockets = (): NodeFault => ({
  name: "socket-refused",
  says: "takes no WebSocket",
  upgrade: "refuse",
})

export const hangingSockets = (): NodeFault => ({
  name: "socket-hangs",
  says: "never answers who asks for a WebSocket",
  upgrade: "hang",
})

export const silentSockets = (): NodeFault => ({
  name: "socket-silent",
  says: "keeps its WebSockets open and sends nothing",
  push: () => {},
})

export const droppedSockets = (): NodeFault => ({
  name: "socket-drops",
  says: "closes a WebSocket in place of what it should send",
  push: (_, { close }) => close(),
})

export const lateSockets = (afterMs: number): NodeFault => ({
  name: "socket-late",
  says: `sends over WebSockets ${afterMs} ms late`,
  push: (notification, { send }) => send(notification, afterMs),
})

export const repeatingSockets = (): NodeFault => ({
  name: "socket-repeats",
  says: "sends everything twice over WebSockets",
  push: (notification, { send }) => {
    send(notification)
    send(notification)
  },
})

/** Holds one back until the next one was sent. */
export const disorderlySockets = (): NodeFault => {
  const held = new Map<string, Notification>()
  return {
    name: "socket-disorder",
    says: "sends over WebSockets in another order",
    push: (notification, { send }) => {
      const id = notification.params.subscription
      const before = held.get(id)
      if (before === undefined) {
        held.set(id, notification)
        return
      }
      held.delete(id)
      send(notification)
      send(before)
    },
  }
}

const isRemoval = ({ params }: Notification): boolean => params.result?.removed === true

export const forgottenRemovals = (): NodeFault => ({
  name: "socket-forgets-removals",
  says: "never sends over WebSockets that logs are removed",
  push: (notification, { send }) => {
    if (!isRemoval(notification)) send(notification)
  },
})

export const repeatedRemovals = (): NodeFault => ({
  name: "socket-repeats-removals",
  says: "sends twice over WebSockets that logs are removed",
  push: (notification, { send }) => {
    if (isRemoval(notification)) send(notification)
    send(notification)
  },
})
