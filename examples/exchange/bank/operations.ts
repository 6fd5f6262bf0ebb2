import { Provider } from "blockwatcher"
import { Bank, Booked, Order, Sent } from "./client.ts"

/** Books a movement of an account. The bank knows a repeat by its key. */
export const book = Provider.operation({
  name: "bank.book",
  repeat: "keyed",
  input: Order,
  output: Booked,
  call: (order, { key, headers }) => Bank.use((bank) => bank.book(order, { ...headers, "idempotency-key": key })),
})

/** Sends the customer a letter. Each time it is asked, one is sent. */
export const sendLetter = Provider.operation({
  name: "bank.send-letter",
  repeat: "never",
  input: Order,
  output: Sent,
  call: (order, { headers }) => Bank.use((bank) => bank.sendLetter(order, headers)),
})
