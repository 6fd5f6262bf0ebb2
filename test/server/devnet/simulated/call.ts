/** Asks a node one thing, and answers its whole answer. */
export const call = async (url: string, method: string, params: ReadonlyArray<unknown> = []): Promise<any> => {
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  })
  return response.json()
}
