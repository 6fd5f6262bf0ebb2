import type { Options } from "@mikro-orm/core"

/** MikroORM's options of a program, but for those that say which database it is and how it is reached. */
export type OrmOptions = Omit<
  Partial<Options>,
  | "driver"
  | "driverOptions"
  | "dbName"
  | "clientUrl"
  | "host"
  | "port"
  | "user"
  | "password"
  | "pool"
  | "replicas"
  | "onCreateConnection"
  | "attachDatabases"
  | "entityManager"
  | "entityRepository"
>
