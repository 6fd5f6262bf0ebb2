import { createHash, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"
import type { Refusal } from "./reply.ts"

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

/** Checks a presented `authorization` value in a time that says nothing about how much of it was right. */
export type TokenCheck = (authorization: unknown) => boolean

/** The check for a server with this token; a server without one lets everyone in. */
export const tokenCheck = (token: Redacted.Redacted | null): TokenCheck => {
  if (token === null) return () => true
  const expected = digest(Redacted.value(token))
  return (authorization) => {
    if (typeof authorization !== "string") return false
    const presented = /^bearer +(.+)$/i.exec(authorization.trim())
    return presented !== null && timingSafeEqual(digest(presented[1]!.trim()), expected)
  }
}

export const unauthenticated: Refusal = {
  status: 401,
  code: "UNAUTHENTICATED",
  message:
    "This server needs its API token: send the header `authorization: Bearer …` (over WebSocket `authorization` in the connection's parameters).",
}
