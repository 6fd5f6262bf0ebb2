/** What stands in place of a secret. */
const MASK = "***"

// Control characters, and those that reorder text or break lines, would let a receiver forge lines in a log.
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g

/**
 * A short piece of what somebody else wrote, fit for a reason: one line, without control characters and without any of
 * `secrets`. `keep` says which end of a longer text is shown, `limit` counts UTF-16 units.
 */
export const excerpt = (
  text: string,
  options: { readonly secrets: ReadonlyArray<string>; readonly limit: number; readonly keep: "start" | "end" },
): string => {
  const masked = options.secrets
    .map((secret) => secret.replace(UNPRINTABLE, " ").trim())
    .filter((secret) => secret !== "")
    // A secret that is part of another one must not leave the rest of it behind.
    .toSorted((a, b) => b.length - a.length)
    .reduce((line, secret) => line.replaceAll(secret, MASK), text.replace(UNPRINTABLE, " "))
    .trim()
  return options.keep === "start" ? masked.slice(0, options.limit) : masked.slice(-options.limit)
}
