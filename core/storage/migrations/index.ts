import { Initial } from "./0001-initial.ts"
import { TakenBack } from "./0002-taken-back.ts"
import { Policies } from "./0003-policies.ts"
import { SourceRecords } from "./0004-source-records.ts"
import { LetterKinds } from "./0005-letter-kinds.ts"
import { Events } from "./0006-events.ts"

/** Every migration in order, by the name that the database records. An explicit list: nothing is discovered from files. */
export const migrations = [
  { name: "0001-initial", class: Initial },
  { name: "0002-taken-back", class: TakenBack },
  { name: "0003-policies", class: Policies },
  { name: "0004-source-records", class: SourceRecords },
  { name: "0005-letter-kinds", class: LetterKinds },
  { name: "0006-events", class: Events },
]
