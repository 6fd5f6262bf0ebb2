import { Initial } from "./0001-initial.ts"

/** Every migration in order, by the name that the database records. An explicit list: nothing is discovered from files. */
export const migrations = [{ name: "0001-initial", class: Initial }]
