import { Resources } from "../../../core/engine/resources.ts"
import type { PluginReport } from "../../../core/plugin/registry.ts"
import { builder } from "../builder.ts"
import { run } from "../run.ts"

const PluginType = builder.objectRef<PluginReport>("Plugin").implement({
  description: "A plugin that was found: loaded, or the reason why it was not.",
  fields: (t) => ({
    name: t.exposeString("name", { description: "What `module` of a network or sink names it by." }),
    kind: t.exposeString("kind", { description: "`source`, `sink`, or `unknown` when it did not load." }),
    source: t.exposeString("source", { description: "The file or folder that it came from." }),
    error: t.exposeString("error", { nullable: true, description: "Why it did not load." }),
    eventTime: t.exposeBoolean("eventTime", {
      nullable: true,
      description: "Of a source: whether its events have a time; gates are refused where they have none.",
    }),
    resumable: t.exposeBoolean("resumable", {
      nullable: true,
      description:
        "Of a source: whether it goes on where it stopped. If not, its cursors count arrivals: what comes while nobody " +
        "looks is not seen, the same thing seen again has another id, and a rewind is refused.",
    }),
  }),
})

builder.queryField("plugins", (t) =>
  t.field({
    type: [PluginType],
    description: "All plugins that were found, those that did not load among them.",
    resolve: async (_, __, context) => [
      ...(await run(
        context,
        Resources.use((resources) => resources.plugins),
      )),
    ],
  }),
)
