/** The deposit addresses that the exchange gave out, and whose deposits come there. */
export const CUSTOMERS: ReadonlyMap<string, string> = new Map([
  ["0x1111111111111111111111111111111111111111", "alice"],
  ["0x2222222222222222222222222222222222222222", "bob"],
  ["0x3333333333333333333333333333333333333333", "carol"],
])
