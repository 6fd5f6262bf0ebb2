import type { MikroORM } from "@mikro-orm/core"
import { Effect, type Scope } from "effect"
import { sessionsOf } from "./session.ts"
import { makeTransactions, type Transactions } from "./transactions.ts"

/** The name of the runtime's own database among the stores. */
export const RUNTIME = "runtime"

/** A database that holds events, deliveries, and what came of them. */
export interface Store extends Transactions {
  readonly name: string
  readonly orm: MikroORM
  readonly database: "sqlite" | "postgres"
  /** The property that names whom an entity belongs to. */
  readonly tenantProperty: string
  /** As `write`, but apart from what is written there, where the database has more than one writer. */
  readonly writeBeside: Transactions["write"]
}

/** Starts the writing of a store, until the scope closes. */
export const makeStore = (parts: {
  readonly name: string
  readonly orm: MikroORM
  readonly database: "sqlite" | "postgres"
  readonly tenantProperty: string
}): Effect.Effect<Store, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { name, database } = parts
    const sessions = sessionsOf(parts.orm, database)
    const transactions = yield* makeTransactions(name, database, sessions)
    const beside = database === "postgres" ? yield* makeTransactions(name, database, sessions) : transactions
    return { ...parts, ...transactions, writeBeside: beside.write }
  })
