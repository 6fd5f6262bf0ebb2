import { describe } from "@effect/vitest"
import type { Layer } from "effect"
import type { Storage } from "../../../core/storage/storage.ts"
import { actions } from "./contract/actions.ts"
import { deadRetractions } from "./contract/dead-retractions.ts"
import { feed } from "./contract/feed.ts"
import { gates } from "./contract/gates.ts"
import { leases } from "./contract/leases.ts"
import { letters } from "./contract/letters.ts"
import { minting } from "./contract/minting.ts"
import { orm } from "./contract/orm.ts"
import { ownership } from "./contract/ownership.ts"
import { progress } from "./contract/progress.ts"
import { pruning } from "./contract/pruning.ts"
import { records } from "./contract/records.ts"
import { resources } from "./contract/resources.ts"
import { retracting } from "./contract/retracting.ts"
import { rewinding } from "./contract/rewinding.ts"
import { settling } from "./contract/settling.ts"
import { takenBack } from "./contract/taken-back.ts"
import { testWith } from "./contract/support.ts"

const parts = {
  ownership,
  leases,
  progress,
  minting,
  gates,
  settling,
  letters,
  feed,
  retracting,
  deadRetractions,
  takenBack,
  rewinding,
  pruning,
  records,
  resources,
  orm,
  actions,
}

/**
 * What every implementation of Storage does. `layer` makes an empty database each time it is called.
 *
 * @param options.concurrent where a test waits for a server, others can go on
 */
export const storageContract = (
  name: string,
  layer: () => Layer.Layer<Storage, unknown>,
  options: { readonly concurrent?: boolean } = {},
): void => {
  for (const [part, declare] of Object.entries(parts)) {
    describe(`${name}: ${part}`, options, () => declare(testWith(layer)))
  }
}
