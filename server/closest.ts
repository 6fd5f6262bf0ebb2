const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}

/** The candidate that a mistyped name most likely meant, or null if none is near. */
export const closest = (name: string, candidates: ReadonlyArray<string>): string | null => {
  const [best] = candidates
    .map((candidate) => ({ candidate, edits: distance(name, candidate) }))
    .toSorted((a, b) => a.edits - b.edits)
  return best !== undefined && best.edits <= 4 ? best.candidate : null
}
