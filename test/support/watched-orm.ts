import type { MikroORM } from "@mikro-orm/core"

/** What hears of the statements and transactions that an event store runs over a MikroORM. */
export interface Watcher {
  /** Told of a statement before it is run, which fails with what this throws; `on` is its transaction. */
  readonly statement: (sql: string, on: object | null) => void
  /** Held before a transaction is committed. */
  readonly ends?: (on: object) => Promise<void>
  /** Held when it is. */
  readonly committed?: (on: object) => Promise<void>
}

interface Executor {
  executeQuery(query: { readonly sql: string }): Promise<unknown>
}

/** The parts of Kysely that are used. */
interface TransactionBuilder {
  setIsolationLevel(level: string): TransactionBuilder
  execute<A>(work: (on: Executor) => Promise<A>): Promise<A>
}

type Client = Executor & { transaction(): TransactionBuilder }

/** The same but for some methods; others are called on the original, which has private fields. */
const replaced = <A extends object>(original: A, methods: Partial<A>): A =>
  new Proxy(original, {
    get: (target, property) => {
      if (property in methods) return Reflect.get(methods, property)
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === "function" ? value.bind(target) : value
    },
  })

/** Lets a watcher hear of what runs over a MikroORM, but for what MikroORM runs outside of transactions. */
export const watch = (orm: MikroORM, { statement, ends, committed }: Watcher): MikroORM => {
  const executing =
    <A extends Executor>(executor: A, on: object | null): A["executeQuery"] =>
    async (query) => {
      statement(query.sql, on)
      return executor.executeQuery(query)
    }

  const watched = (builder: TransactionBuilder): TransactionBuilder => ({
    setIsolationLevel: (level) => watched(builder.setIsolationLevel(level)),
    execute: async (work) => {
      const transaction = {}
      const answer = await builder.execute(async (on) => {
        const worked = await work(replaced(on, { executeQuery: executing(on, transaction) }))
        await ends?.(transaction)
        return worked
      })
      await committed?.(transaction)
      return answer
    },
  })

  const connection = orm.em.getConnection() as unknown as { getClient(): Client }
  const getClient = connection.getClient.bind(connection)
  connection.getClient = () => {
    const client = getClient()
    return replaced<Client>(client, {
      executeQuery: executing(client, null),
      transaction: () => watched(client.transaction()),
    })
  }
  return orm
}
