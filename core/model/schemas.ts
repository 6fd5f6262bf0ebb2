import { Effect, Schema } from "effect"

/** The largest number of ms, deliveries or attempts that a definition takes. */
const MAX = 2_147_483_647

export const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
export const positiveInt = between(1, MAX)

/** Accepts an absent key as `value` (in the JSON form). */
export const orElse =
  <E>(value: E) =>
  <S extends Schema.Codec<any, E>>(schema: S) =>
    schema.pipe(Schema.withDecodingDefault(Effect.succeed(value as S["Encoded"])))
