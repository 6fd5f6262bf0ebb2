import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { Result } from "effect"
import type { RecordType } from "../../../../core/model/fields.ts"
import { decodeConfig } from "../../../../core/plugin/decode-config.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { shapeOf } from "./driver.ts"

const text = readFileSync(new URL("../../../../docs/selectors.md", import.meta.url), "utf8")

/** The JSON of each kind's section: a selector, and an event that it yields. */
const examples = text
  .split("\n## ")
  .map((section) => [...section.matchAll(/```json\n(.*?)```/gs)].map(([, json]) => JSON.parse(json!)))
  .filter((blocks) => blocks.length > 0)

/** The fields of a record and of the records in it, in their order; arguments are those of the example's event. */
const outline = (type: RecordType): unknown =>
  Object.entries(type.fields).map(([name, field]) =>
    field.kind === "record" && name !== "args" ? [name, outline(field)] : name,
  )

const outlineOf = (json: object): unknown =>
  Object.entries(json).map(([name, value]) =>
    typeof value === "object" && value !== null && name !== "args" ? [name, outlineOf(value)] : name,
  )

describe("docs/selectors.md", () => {
  it("has an example of each kind, which is accepted and yields what it says", () => {
    assert.deepStrictEqual(
      examples.map(([selector]) => selector.kind),
      ["event", "call", "transaction", "block"],
    )
    for (const [written, event] of examples) {
      const selector = Result.getOrThrow(decodeConfig(evmRpc.selector, written))
      const { fields } = shapeOf(selector)
      assert.deepStrictEqual(outlineOf(event), outline(fields))
      const args = fields.fields["args"] as RecordType | undefined
      if (args === undefined) continue
      const forms = Object.values(args.forms ?? { only: args }).map((form) => Object.keys(form.fields))
      assert.deepInclude(forms, Object.keys(event.args))
    }
  })
})
