import { isIP } from "node:net"
import { Redacted, Result } from "effect"
import ipaddr from "ipaddr.js"
import type { Parsed } from "./environment-reader.ts"

/** The variables by which the devnet command offers the URLs of its providers to seed files. */
export const DEVNET_URLS: ReadonlyArray<string> = [
  "BLOCKWATCHER_DEVNET_URL",
  "BLOCKWATCHER_DEVNET_URL_2",
  "BLOCKWATCHER_DEVNET_URL_3",
]

/** Where the rows are kept. */
export type Database =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: Redacted.Redacted }

export const parseDatabase = (text: string): Parsed<Database> => {
  if (text === "memory:") return Result.succeed({ kind: "memory" })
  const path = /^sqlite:(?!\/\/)(.+)$/.exec(text)?.[1]
  if (path !== undefined) return Result.succeed({ kind: "sqlite", path })
  if (/^postgres(ql)?:/.test(text)) return parsePostgres(text)
  return Result.fail(
    "expected sqlite:PATH (such as sqlite:data/blockwatcher.db), postgres://USER:PASSWORD@HOST:PORT/DATABASE or memory:",
  )
}

const parsePostgres = (text: string): Parsed<Database> =>
  /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) && new URL(text).pathname.length > 1
    ? Result.succeed({ kind: "postgres", url: Redacted.make(text) })
    : Result.fail(
        "expected postgres://USER:PASSWORD@HOST:PORT/DATABASE; characters such as @ : / # ? in the password are written as %40 %3A %2F %23 %3F",
      )

export const parseHost = (text: string): Parsed<string> =>
  isIP(text) !== 0 || /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(text)
    ? Result.succeed(text)
    : Result.fail("expected an address or host name of this machine, such as 127.0.0.1 or 0.0.0.0")

export const parseInteger =
  (minimum: number, maximum: number) =>
  (text: string): Parsed<number> => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return value >= minimum && value <= maximum
      ? Result.succeed(value)
      : Result.fail(`expected an integer from ${minimum} to ${maximum}`)
  }

export const parseToken = (text: string): Parsed<Redacted.Redacted> =>
  /^[\x21-\x7e]+$/.test(text)
    ? Result.succeed(Redacted.make(text))
    : Result.fail(
        "expected printable ASCII characters without spaces, or the variable unset for a server without a token",
      )

export const parseDirectoryName = (text: string): Parsed<string> => Result.succeed(text)

export const parseCidrs = (text: string): Parsed<ReadonlyArray<string>> => {
  const cidrs = text.split(",").map((item) => item.trim())
  const bad = cidrs.filter((cidr) => !ipaddr.isValidCIDR(cidr))
  return bad.length === 0
    ? Result.succeed(cidrs)
    : Result.fail(
        `expected CIDRs with commas between them, such as 10.0.0.0/8,192.168.1.7/32; not one: ${bad.map((item) => JSON.stringify(item)).join(", ")}`,
      )
}

/** What a variable holds, as an error may show it: never a token, nor a password or parameter of a URL. */
export const displayed = (name: string, text: string): string => {
  if (name === "API_TOKEN") return text === "" ? "empty" : "a value that is not shown"
  if (name !== "DATABASE_URL") return JSON.stringify(text)
  return JSON.stringify(withoutSecrets(text))
}

/** Whatever stands where a password may stand is hidden: one that was not encoded may hold any character. */
const withoutSecrets = (text: string): string =>
  text
    .replace(/^([^:]*:(?:\/\/)?[^:@/]*):.*@/s, "$1:***@")
    .replace(/^([^:]*:(?:\/\/)?[^:@/]*:)(?!\*\*\*@|\d+(?:\/|$)).*/s, "$1***")
    .replace(/\?.*$/s, "?***")
