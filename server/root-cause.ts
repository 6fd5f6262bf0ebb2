/** The innermost cause of an error: what the system says of a connection. */
export const rootCause = (error: unknown): string => {
  let root = error
  while (root instanceof Error && root.cause !== undefined) root = root.cause
  if (root instanceof AggregateError && root.errors.length > 0) return rootCause(root.errors[0])
  return root instanceof Error ? root.message : String(root)
}
