/** A URL without its user and password, and the header that carries them instead. */
export const separateCredentials = (
  endpoint: URL,
): { readonly url: URL; readonly headers: Readonly<Record<string, string>> } => {
  const url = new URL(endpoint)
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  url.username = url.password = ""
  return { url, headers: user === ":" ? {} : { authorization: `Basic ${Buffer.from(user).toString("base64")}` } }
}
