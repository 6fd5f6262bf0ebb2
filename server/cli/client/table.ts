import { oneLine } from "./one-line.ts"

/** Lines with aligned columns under a heading; the last column is as long as it is. */
export const table = (heading: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const cells = [heading, ...rows.map((row) => row.map(oneLine))]
  const widths = heading.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) => row.map((cell, column) => (column < row.length - 1 ? cell.padEnd(widths[column]!) : cell)).join("  "))
    .join("\n")
}
