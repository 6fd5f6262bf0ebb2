import { createHmac } from "node:crypto"

const PREFIX = "whsec_"
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** The key of a Standard Webhooks secret (base64, with or without `whsec_` before it), or null if it is none. */
export const signingKey = (secret: string): Uint8Array | null => {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const key = BASE64.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.alloc(0)
  return key.length === 0 ? null : key
}

/** The `webhook-signature` header: one signature a key, over the id, the time in seconds and the bytes that are sent. */
export const signatureHeader = (
  keys: ReadonlyArray<Uint8Array>,
  content: { readonly id: string; readonly timestamp: number; readonly body: Uint8Array },
): string =>
  keys
    .map((key) => {
      const hmac = createHmac("sha256", key).update(`${content.id}.${content.timestamp}.`).update(content.body)
      return `v1,${hmac.digest("base64")}`
    })
    .join(" ")
