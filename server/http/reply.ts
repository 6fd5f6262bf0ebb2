import type { ServerResponse } from "node:http"

/** An answer that is given before GraphQL is reached, in the shape of a GraphQL error. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
}

export const sendJson = (response: ServerResponse, status: number, body: unknown): void => {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
  })
  response.end(text)
}

export const sendRefusal = (response: ServerResponse, { status, code, message }: Refusal): void => {
  if (status === 401) response.setHeader("www-authenticate", "Bearer")
  sendJson(response, status, { errors: [{ message, extensions: { code } }] })
}

/** Sends a text of the given type. */
export const sendText = (response: ServerResponse, type: string, body: string): void => {
  response.writeHead(200, { "content-type": type, "content-length": Buffer.byteLength(body) })
  response.end(body)
}
