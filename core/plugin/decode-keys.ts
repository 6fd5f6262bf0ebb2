import type { SchemaAST } from "effect"
import { alternatives, expected } from "./decode-expected.ts"

/** Says why an object may not have a key: what it was probably meant to be, or which keys there are. */
export const unknownKey = (key: string, ast: SchemaAST.AST): string => {
  if (ast._tag !== "Objects") return "is not accepted here"
  const known = ast.propertySignatures.map(({ name }) => String(name))
  if (known.length === 0)
    return ast.indexSignatures.length === 0
      ? "is not a known key: no keys are accepted here"
      : `is not accepted as a name: it must be ${alternatives(ast.indexSignatures.map(({ parameter }) => expected(parameter)))}`
  const meant = nearest(key, known)
  return meant === undefined
    ? `is not a known key; known are ${known.join(", ")}`
    : `is not a known key; did you mean ${JSON.stringify(meant)}?`
}

/** The known key that differs from `key` by spelling alone, or by few letters. */
const nearest = (key: string, known: ReadonlyArray<string>): string | undefined => {
  const [best] = known
    .map((name) => ({ name, distance: editDistance(letters(key), letters(name)) }))
    .filter(({ name, distance }) => distance <= Math.min(2, Math.floor(name.length / 3)))
    .toSorted((a, b) => a.distance - b.distance)
  return best?.name
}

const letters = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, "")

const editDistance = (a: string, b: string): number => {
  if (Math.abs(a.length - b.length) > 2) return 3
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++)
      row.push(Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    previous = row
  }
  return previous[b.length]!
}
