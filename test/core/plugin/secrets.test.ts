import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem, Inspectable, Layer, Redacted } from "effect"
import { fieldProblems, resolveField } from "../../../core/plugin/secrets-field.ts"
import { isBrokenReference, isSecretReference, Secrets } from "../../../core/plugin/secrets.ts"

const withEnvironment = (env: Record<string, string>) =>
  Secrets.layer.pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    Layer.provideMerge(NodeFileSystem.layer),
    Layer.fresh,
  )

const files = withEnvironment({})

const resolve = (reference: string) => Secrets.use((secrets) => secrets.resolve(reference))

const message = (reference: string) =>
  resolve(reference).pipe(
    Effect.flip,
    Effect.map((error) => error.message),
  )

const refuse = (value: string) => (value === "bad" ? "it is bad" : null)

const written = (content: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped()
    const path = `${directory}/secret with spaces`
    yield* fs.writeFileString(path, content)
    return path
  })

describe("a reference env:NAME", () => {
  it.effect("is the value of the variable, whatever other names begin with it", () =>
    Effect.gen(function* () {
      assert.strictEqual(Redacted.value(yield* resolve("env:KEY")), "one")
      assert.strictEqual(Redacted.value(yield* resolve("env:KEY_OF_MINE")), "two")
      assert.strictEqual(Redacted.value(yield* resolve("env:_key__x9")), "three\n")
    }).pipe(Effect.provide(withEnvironment({ KEY: "one", KEY_OF_MINE: "two", _key__x9: "three\n" }))),
  )

  it.effect.each([{ env: {} }, { env: { KEY: "" } }])("fails, naming the variable, for $env", ({ env }) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(resolve("env:KEY"))
      assert.strictEqual(error.message, "secret env:KEY: KEY is not set, or empty; set it where blockwatcher starts")
    }).pipe(Effect.provide(withEnvironment(env))),
  )

  it.effect("asks the provider that the layer was built with, not that of its user", () =>
    Effect.gen(function* () {
      const elsewhere = ConfigProvider.fromEnv({ env: { KEY: "theirs" } })
      const value = yield* resolve("env:KEY").pipe(Effect.provideService(ConfigProvider.ConfigProvider, elsewhere))
      assert.strictEqual(Redacted.value(value), "ours")
    }).pipe(Effect.provide(withEnvironment({ KEY: "ours" }))),
  )
})

describe("a reference file:PATH", () => {
  it.effect.each([
    { content: "secret", value: "secret" },
    { content: "secret\n", value: "secret" },
    { content: "secret\r\n", value: "secret" },
    { content: " two\nlines \n\n", value: " two\nlines \n" },
  ])("is the content of the file without one newline at its end: $content", ({ content, value }) =>
    Effect.gen(function* () {
      const path = yield* written(content)
      assert.strictEqual(Redacted.value(yield* resolve(`file:${path}`)), value)
    }).pipe(Effect.provide(files)),
  )

  it.effect("fails for a file that is not there, a directory and an empty file", () =>
    Effect.gen(function* () {
      const path = yield* written("\n")
      const directory = path.slice(0, path.lastIndexOf("/"))
      assert.strictEqual(
        yield* message(`file:${path}.no`),
        `secret file:${path}.no: there is no such file; create it or correct the path`,
      )
      assert.match(yield* message(`file:${directory}`), /the file cannot be read; check that the path names/)
      assert.strictEqual(yield* message(`file:${path}`), `secret file:${path}: it is empty; give it a value`)
    }).pipe(Effect.provide(files)),
  )
})

describe("a secret", () => {
  it.effect("does not show its value when it is printed, serialised or inspected", () =>
    Effect.gen(function* () {
      const secret = yield* resolve("env:KEY")
      const shown = [String(secret), JSON.stringify(secret), Inspectable.toStringUnknown(secret)].join()
      assert.notInclude(shown, "hunter2")
      assert.include(shown, "env:KEY")
    }).pipe(Effect.provide(withEnvironment({ KEY: "hunter2" }))),
  )

  it.effect("is not repeated by the error when a value was written in place of a reference", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(resolve("hunter2"))
      assert.notInclude(error.message, "hunter2")
      assert.include(error.message, "write env:NAME or file:PATH")
    }).pipe(Effect.provide(files)),
  )
})

describe("a field that may hold a reference", () => {
  it.each(["env:A", "env:_a1", "file:x", "file:/run/secrets/key"])("takes %s as one", (text) => {
    assert.isTrue(isSecretReference(text))
    assert.isFalse(isBrokenReference(text))
  })

  it.each(["env:", "env:A-B", "env:1A", "file:"])("takes %s for a broken one", (text) => {
    assert.isFalse(isSecretReference(text))
    assert.isTrue(isBrokenReference(text))
  })

  it.each(["", "plain", "environment:A", "https://example.org"])("takes '%s' as it is", (text) => {
    assert.isFalse(isSecretReference(text))
    assert.isFalse(isBrokenReference(text))
  })

  it.effect("keeps plain values, resolves references, and gathers all problems without their values", () =>
    Effect.gen(function* () {
      const fields = yield* Effect.all([
        resolveField("a", "plain", refuse),
        resolveField("b", "env:GOOD", refuse),
        resolveField("c", "env:BAD", refuse),
        resolveField("d", "env:MISSING", refuse),
      ])
      assert.deepStrictEqual(fields.slice(0, 2), [
        { value: "plain", isSecret: false },
        { value: "good", isSecret: true },
      ])
      assert.deepStrictEqual(fieldProblems(fields), [
        { path: "c", message: "env:BAD: it is bad" },
        {
          path: "d",
          message: "secret env:MISSING: MISSING is not set, or empty; set it where blockwatcher starts",
        },
      ])
    }).pipe(Effect.provide(withEnvironment({ GOOD: "good", BAD: "bad" }))),
  )
})
