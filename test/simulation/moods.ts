/** How the world around a runtime is minded: shares of 1 in which something goes wrong. */
export interface Moods {
  readonly sink: {
    readonly transient: number
    readonly rateLimited: number
    readonly permanent: number
    /** A digest is refused for its size. */
    readonly tooLarge: number
    /** It takes a delivery and says that it did not. */
    readonly unknown: number
    readonly slow: number
  }
  /** A write is refused, or late. */
  readonly storage: { readonly refused: number; readonly late: number }
  readonly rpc: { readonly failing: number }
}

export const calm: Moods = {
  sink: { transient: 0, rateLimited: 0, permanent: 0, tooLarge: 0, unknown: 0, slow: 0 },
  storage: { refused: 0, late: 0 },
  rpc: { failing: 0 },
}

/** No sink takes anything. */
export const away: Moods = { ...calm, sink: { ...calm.sink, transient: 1 } }
