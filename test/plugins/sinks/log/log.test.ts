import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import log from "../../../../plugins/sinks/log/index.ts"
import { aMatch, configProblems, makeSink, matchDelivery, pluginServices, retractedDelivery } from "../sink.ts"

interface Line {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
}

const recorder = () => {
  const lines: Array<Line> = []
  const logger = Logger.make<unknown, void>(({ fiber, logLevel, message }) => {
    lines.push({ level: logLevel, message, annotations: fiber.getRef(References.CurrentLogAnnotations) })
  })
  return { lines, layer: Layer.merge(Logger.layer([logger]), pluginServices()) }
}

describe("a log sink", () => {
  it.effect("writes the canonical JSON of each event as one line with the delivery's id", () => {
    const { lines, layer } = recorder()
    return Effect.gen(function* () {
      const sink = yield* makeSink(log, {})
      const delivery = matchDelivery(aMatch("m1"), { nonce: "n1" })
      yield* sink.deliver(...delivery)
      yield* sink.deliver(...retractedDelivery("m1"))
      assert.deepStrictEqual(lines, [
        { level: "Info", message: [delivery[1].body], annotations: { delivery: "m1", attempt: "n1" } },
        {
          level: "Info",
          message: ['{"type":"retracted","match_id":"m1"}'],
          annotations: { delivery: "m1-r" },
        },
      ])
    }).pipe(Effect.provide(layer))
  })

  it.effect("writes at the level of its config", () => {
    const { lines, layer } = recorder()
    return Effect.gen(function* () {
      for (const level of ["warn", "error"]) {
        const sink = yield* makeSink(log, { level })
        yield* sink.deliver(...matchDelivery(aMatch("m1")))
      }
      assert.deepStrictEqual(
        lines.map(({ level }) => level),
        ["Warn", "Error"],
      )
    }).pipe(Effect.provide(layer))
  })

  it("refuses an unknown level and unknown fields", () => {
    assert.match(configProblems(log, { level: "loud" }).join(), /^level: /)
    assert.match(configProblems(log, { file: "x" }).join(), /^file: /)
  })
})
