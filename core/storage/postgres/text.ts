/** Text as PostgreSQL can store it: it has no zero character, which an answer of a receiver may well hold. */
export const storable = (text: string): string => text.replaceAll("\0", "\uFFFD")
