import { Config, ConfigProvider, Context, Effect, FileSystem, Layer, Redacted, Schema } from "effect"

/** A secret reference could not be resolved. Names the reference, never a value. */
export class SecretUnavailable extends Schema.TaggedError<SecretUnavailable>()("SecretUnavailable", {
  reference: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `secret ${this.reference}: ${this.reason}`
  }
}

/** `env:NAME` or `file:PATH`. */
export const SecretReference = Schema.String.check(
  Schema.isPattern(/^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$/, { expected: "a reference: env:NAME or file:PATH" }),
)

const isReference = Schema.is(SecretReference)

/** True for what `resolve` accepts, so that a config field may hold a plain value or a reference. */
export const isSecretReference = (text: string): boolean => isReference(text)

/** True for a text that was meant as a reference and is none: it must not be used as a plain value. */
export const isBrokenReference = (text: string): boolean => /^(env|file):/.test(text) && !isReference(text)

const unavailable = (reference: string, reason: string) => Effect.fail(new SecretUnavailable({ reference, reason }))

/**
 * Resolves secret references when a plugin is built: `env:` through the ConfigProvider that the layer was built with (by
 * default the environment), `file:` from the disk without one newline at its end.
 */
export class Secrets extends Context.Service<
  Secrets,
  { readonly resolve: (reference: string) => Effect.Effect<Redacted.Redacted, SecretUnavailable> }
>()("blockwatcher/Secrets") {
  static readonly layer: Layer.Layer<Secrets, never, FileSystem.FileSystem> = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const provider = yield* ConfigProvider.ConfigProvider
      const files = yield* FileSystem.FileSystem

      const fromEnvironment = (reference: string, name: string) =>
        Config.String(name)
          .parse(provider)
          .pipe(
            Effect.mapError(
              () =>
                new SecretUnavailable({
                  reference,
                  reason: `${name} is not set, or empty; set it where blockwatcher starts`,
                }),
            ),
          )

      const fromFile = (reference: string, path: string) =>
        files.readFileString(path).pipe(
          Effect.map((text) => text.replace(/\r?\n$/, "")),
          Effect.catchReasons(
            "PlatformError",
            {
              NotFound: () => unavailable(reference, "there is no such file; create it or correct the path"),
              PermissionDenied: () => unavailable(reference, "the file may not be read; give this process permission"),
            },
            () => unavailable(reference, "the file cannot be read; check that the path names a readable file"),
          ),
        )

      const resolve = Effect.fn("Secrets.resolve")(function* (reference: string) {
        if (!isReference(reference)) {
          return yield* new SecretUnavailable({
            reference: "(not shown)",
            reason: "it is no reference; write env:NAME or file:PATH",
          })
        }
        const rest = reference.slice(reference.indexOf(":") + 1)
        const value = yield* reference.startsWith("env:") ? fromEnvironment(reference, rest) : fromFile(reference, rest)
        if (value === "") return yield* new SecretUnavailable({ reference, reason: "it is empty; give it a value" })
        return Redacted.make(value, { label: reference })
      })

      return Secrets.of({ resolve })
    }),
  )
}
