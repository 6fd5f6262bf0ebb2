import { assert, describe, it } from "@effect/vitest"
import { excerpt } from "../../../core/plugin/secrets-excerpt.ts"

const show = (text: string, secrets: ReadonlyArray<string> = [], limit = 40, keep: "start" | "end" = "start") =>
  excerpt(text, { secrets, limit, keep })

describe("an excerpt", () => {
  it("keeps the beginning or the end", () => {
    assert.strictEqual(show("0123456789", [], 4), "0123")
    assert.strictEqual(show("0123456789", [], 4, "end"), "6789")
    assert.strictEqual(show("0123", [], 4, "end"), "0123")
  })

  it("is one line without control characters", () => {
    assert.strictEqual(show("  a\r\n\tb\u0000c\u001b[31md\u2028e\u202ef\u009bg \n"), "a b c [31md e f g")
  })

  it("holds no secret, not even the rest of a longer one, wherever the cut falls", () => {
    assert.strictEqual(show("key=hunter2; longer=hunter2hunter3", ["hunter2", "hunter2hunter3"]), "key=***; longer=***")
    assert.strictEqual(show("0123456 hunter2", ["hunter2"], 10), "0123456 **")
    assert.strictEqual(show("a two\nline secret", ["two\nline"]), "a *** secret")
    assert.strictEqual(show("unchanged", ["", " "]), "unchanged")
  })
})
