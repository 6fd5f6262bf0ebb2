import { Type } from "@mikro-orm/core"

/** Whole units of a token. Kept as text, for a uint256 fits into no integer of SQLite and no number of JavaScript. */
export class Amount extends Type<bigint, string> {
  override convertToDatabaseValue(amount: bigint): string {
    return amount.toString()
  }

  override convertToJSValue(text: string): bigint {
    return BigInt(text)
  }

  override getColumnType(): string {
    return "text"
  }
}
