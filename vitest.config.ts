import { defineConfig } from "vitest/config"

export default defineConfig({
  // The file that Node takes: Vite prefers the ES build beside it, and graphql refuses to be loaded twice.
  resolve: { alias: [{ find: /^graphql$/, replacement: "graphql/index.js" }] },
  // The workers get these too. "import" is not among them, for a package that is required would then be taken for a module.
  ssr: { resolve: { conditions: ["blockwatcher-source", "node"] } },
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
