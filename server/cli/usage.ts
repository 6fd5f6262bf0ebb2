import { Console, Layer } from "effect"
import { CliOutput } from "effect/cli"

/** Says what is wrong with a call, and where the help is, which would push the error out of sight. */
export const usageLayer = Layer.succeed(CliOutput.Presenter, {
  present: (event) => {
    if (event._tag !== "InvalidInvocation") return CliOutput.defaultPresenter.present(event)
    const lines = event.errors.map(({ message }) => `blockwatcher: ${message}`)
    return Console.error([...lines, `Run ${event.commandPath.join(" ")} --help for what there is.`].join("\n"))
  },
} satisfies CliOutput.Presenter)
