import { DatabaseSync } from "node:sqlite"

/** What the bank is asked for; the amount is text, with every digit. */
export interface Order {
  readonly reference: string
  readonly customer: string
  readonly amount: string
}

/** A booking that was made: once, however often it was asked for. */
export interface Booking extends Order {
  readonly receipt: number
  readonly key: string
  readonly asked: number
}

/** A letter that was sent. */
export interface Letter extends Order {
  readonly number: number
}

/** The bank's book, in a file of its own: what was done is on the disk before it is answered. */
export const openBook = (path: string) => {
  const database = new DatabaseSync(path)
  database.exec(`
    pragma synchronous = full;
    create table if not exists bookings (
      receipt integer primary key, key text not null unique, reference text, customer text, amount text, asked integer
    );
    create table if not exists letters (number integer primary key, reference text, customer text, amount text);
  `)
  const asked = database.prepare(`update bookings set asked = asked + 1 where key = ? returning *`)
  const book = database.prepare(
    `insert into bookings (key, reference, customer, amount, asked) values (?, ?, ?, ?, 1) returning receipt`,
  )
  const send = database.prepare(`insert into letters (reference, customer, amount) values (?, ?, ?) returning number`)
  return {
    /** Books what no order of this key has booked; answers its receipt, or null when the key is another order's. */
    book: (key: string, { reference, customer, amount }: Order): number | null => {
      const before = asked.get(key) as Booking | undefined
      if (before === undefined) return Number(book.get(key, reference, customer, amount)!["receipt"])
      const isSame = before.reference === reference && before.customer === customer && before.amount === amount
      return isSame ? before.receipt : null
    },
    /** Sends a letter, each time; answers its number. */
    send: ({ reference, customer, amount }: Order): number => Number(send.get(reference, customer, amount)!["number"]),
    /** Everything that was done. */
    all: () => ({
      bookings: database.prepare("select * from bookings order by receipt").all() as unknown as ReadonlyArray<Booking>,
      letters: database.prepare("select * from letters order by number").all() as unknown as ReadonlyArray<Letter>,
    }),
  }
}

/** Everything that a bank did. */
export type Done = ReturnType<ReturnType<typeof openBook>["all"]>
