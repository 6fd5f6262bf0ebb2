import { Redacted, Result } from "effect"
import type { Parsed } from "../environment-reader.ts"

/** How spans are written for the collector. */
export type Protocol = "http/protobuf" | "http/json"

/** Where spans are sent; never with what lets one in. */
export const parseEndpoint = (text: string): Parsed<URL> => {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    return Result.fail("expected the http:// or https:// URL of an OTLP collector, such as http://127.0.0.1:4318")
  return url.username === "" && url.password === ""
    ? Result.succeed(url)
    : Result.fail("expected a URL without a user and password; give what lets one in by OTEL_EXPORTER_OTLP_HEADERS")
}

/** A URL as an error may show it, whatever it is. */
export const shownUrl = (text: string): string =>
  JSON.stringify(text.replace(/^([^:]*:\/\/)?.*@/s, "$1***@").replace(/\?.*$/s, "?***"))

/** The path of traces behind the collector's own. */
export const tracesOf = (base: URL): URL => {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/traces`
  return url
}

/** One of these words. */
export const parseWord =
  <W extends string>(words: ReadonlyArray<W>, advice = "") =>
  (text: string): Parsed<W> => {
    const word = words.find((each) => each === text.trim().toLowerCase())
    return word === undefined ? Result.fail(`expected ${words.join(" or ")}${advice}`) : Result.succeed(word)
  }

/** `name=value` pairs with commas between them, percent-encoded where needed; null if it is none. */
const parsePairs = (text: string): ReadonlyMap<string, string> | null => {
  const pairs = new Map<string, string>()
  for (const item of text.split(",")) {
    if (item.trim() === "") continue
    const at = item.indexOf("=")
    const [name, value] = [decoded(item.slice(0, at)), decoded(item.slice(at + 1))]
    if (at < 1 || name === null || name === "" || value === null) return null
    pairs.set(name, value)
  }
  return pairs
}

const decoded = (text: string): string | null => {
  try {
    return decodeURIComponent(text.trim())
  } catch {
    return null
  }
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Headers that may hold what lets one in. */
export const parseHeaders = (text: string): Parsed<Redacted.Redacted<Readonly<Record<string, string>>>> => {
  const pairs = parsePairs(text)
  const areHeaders = pairs?.entries().every(([name, value]) => NAME.test(name) && VALUE.test(value)) ?? false
  return pairs === null || !areHeaders
    ? Result.fail(
        "expected HTTP headers as NAME=VALUE with commas between them; what is special in a value is written as %20",
      )
    : Result.succeed(Redacted.make(Object.fromEntries(pairs)))
}

export const parseAttributes = (text: string): Parsed<Readonly<Record<string, string>>> => {
  const pairs = parsePairs(text)
  return pairs === null
    ? Result.fail("expected NAME=VALUE with commas between them, such as deployment.environment.name=staging")
    : Result.succeed(Object.fromEntries(pairs))
}

/** A share between 0 and 1. */
export const parseShare = (text: string): Parsed<number> => {
  const share = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  return share >= 0 && share <= 1 ? Result.succeed(share) : Result.fail("expected a number from 0 to 1")
}
