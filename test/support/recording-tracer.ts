import { Exit, Tracer } from "effect"

/** A tracer that keeps the spans that have ended, in the order of their ends. */
export class RecordingTracer {
  readonly spans: Array<Tracer.Span> = []

  readonly tracer: Tracer.Tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const end = span.end.bind(span)
      span.end = (at, exit) => {
        end(at, exit)
        this.spans.push(span)
      }
      return span
    },
  })

  named(name: string): ReadonlyArray<Tracer.Span> {
    return this.spans.filter((span) => span.name === name)
  }
}

export const parentOf = ({ parent }: Tracer.Span): Tracer.AnySpan | null =>
  parent._tag === "Some" ? parent.value : null

export const hasFailed = ({ status }: Tracer.Span): boolean => status._tag === "Ended" && Exit.isFailure(status.exit)
