import { assert, describe, it } from "@effect/vitest"
import artifact from "../../../server/devnet/contract/Token.json" with { type: "json" }
import { compileToken } from "../../../server/devnet/contract/compile.ts"

describe("the devnet's token", () => {
  it("is compiled from the source beside it; else run node server/devnet/contract/compile.ts", () => {
    assert.deepStrictEqual(compileToken(), artifact)
  })
})
