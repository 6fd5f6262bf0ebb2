/** A predicate failed while it ran (division by zero, a missing key, a spent budget). Never means 'false'. */
export class PredicateFailure extends Error {
  override readonly name = "PredicateFailure"
}

/** A bound on the work of one evaluation was reached. Unlike other failures, `||`, `&&`, `all` and `exists` never absorb it. */
export class LimitReached extends PredicateFailure {}

/** Whether the other operand of `||` or `&&` may still decide after this error. */
export const isAbsorbable = (error: unknown): boolean =>
  error instanceof PredicateFailure && !(error instanceof LimitReached)
