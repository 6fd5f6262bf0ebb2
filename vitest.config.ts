import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * What takes longest comes first, so that the end does not wait for one of them, and those of a kind follow each other: a
 * worker that has loaded the sources ends when a file is next that wants a process of its own.
 */
const FIRST = [
  "package/pack",
  "system/exchange/",
  "simulation/mutants",
  "simulation/",
  "package/",
  "system/failpoints",
  "core/engine/races/races",
  "core/storage/postgres/contract",
  "system/stall",
  "core/storage/postgres/",
  "server/dead-letters",
  "system/owners",
  "system/",
  "server/cli",
  "core/actions/",
  "core/storage/sqlite/",
  "server/devnet/",
]

const placeOf = ({ moduleId }: TestSpecification): number => {
  const found = FIRST.findIndex((name) => moduleId.includes(`/test/${name}`))
  return found < 0 ? FIRST.length : found
}

class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    // oxlint-disable-next-line unicorn/no-array-sort
    const byDefault = await super.sort(files)
    return byDefault.toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}

/** Tests in one process that leave nothing behind in it: they load the sources once, and not for each file. */
const TOGETHER = ["test/{core,examples,plugins,server,support,system}/**/*.test.ts"]

export default defineConfig({
  // The file that Node takes: Vite prefers the ES build beside it, and graphql refuses to be loaded twice.
  resolve: { alias: [{ find: /^graphql$/, replacement: "graphql/index.js" }] },
  // The workers get these too. "import" is not among them, for a package that is required would then be taken for a module.
  ssr: { resolve: { conditions: ["blockwatcher-source", "node"] } },
  test: {
    globalSetup: "test/support/bundle/setup.ts",
    pool: "forks",
    // Three for two cores: many tests mostly wait.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      { extends: true, test: { name: "apart", include: ["test/**/*.test.ts"], exclude: TOGETHER } },
      { extends: true, test: { name: "together", include: TOGETHER, isolate: false } },
    ],
  },
})
