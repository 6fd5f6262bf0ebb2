import { Effect } from "effect"
import { type DeadLetterReplay, DeadLetters, type ReplayCounts } from "../../../core/engine/dead-letters.ts"
import { builder } from "../builder.ts"
import { defined } from "../input.ts"
import { invalid } from "../problems.ts"
import { run } from "../run.ts"
import { DeadLetterType, DeliveryKindType, ENDED, kindFilter } from "./dead-letter.ts"

const DeadLetterReplayType = builder.objectRef<DeadLetterReplay>("DeadLetterReplay").implement({
  description: "How the replay of a dead letter ended.",
  fields: (t) => ({
    delivered: t.exposeBoolean("delivered", { description: "Whether the sink took it: then the letter is gone." }),
    deadLetter: t.expose("deadLetter", {
      type: DeadLetterType,
      nullable: true,
      description: "The letter as it is kept when the replay failed, with the new reason and all its attempts.",
    }),
  }),
})

const DeadLetterReplaysType = builder.objectRef<ReplayCounts>("DeadLetterReplays").implement({
  description: "What became of the letters of a bulk replay.",
  fields: (t) => ({
    delivered: t.exposeInt("delivered", { description: "Letters that their sinks took." }),
    failed: t.exposeInt("failed", { description: "Letters that are kept with a new reason." }),
    skipped: t.exposeInt("skipped", {
      description:
        "Letters that are left as they were: they cannot be replayed, or their sink is down, paused, FAILED or missing, or the network had to make way for something else. All letters to a sink that takes none are counted.",
    }),
    whySkipped: t.exposeStringList("whySkipped", {
      description: "Why letters are left, and what to do: each reason once.",
    }),
    endCursor: t.exposeString("endCursor", {
      nullable: true,
      description:
        "Pass it as `after` to go on behind these letters, also those that failed; null if none is behind them.",
    }),
  }),
})

const MAX_REPLAYS = 10_000

/** How many letters a bulk replay sends. Throws INVALID outside 1 to 10,000; null means the default. */
const replayCount = (first: number | null | undefined): number => {
  const count = first ?? 500
  if (count >= 1 && count <= MAX_REPLAYS) return count
  throw invalid([{ path: "first", message: `is ${count}; one call replays 1 to ${MAX_REPLAYS} letters` }])
}

builder.mutationFields((t) => ({
  replayDeadLetter: t.field({
    type: DeadLetterReplayType,
    description:
      "Sends a dead letter again, as its sink is configured now and with all its retries; answers when that is over, and goes on if nobody waits for it. The receiver gets the same id and bytes, with a `blockwatcher-attempt` of its own. CONFLICT while the sink is paused, FAILED or missing; RETRACTED, NO_REPLAY_RETRACTED or NO_REPLAY_PAYLOAD where the letter's `whyNot` says so.",
    args: { id: t.arg.id({ description: "The letter's id." }) },
    resolve: (_, { id }, context) => {
      context.views.forget()
      return run(
        context,
        DeadLetters.use((letters) => letters.replay(id)),
      )
    },
  }),
  replayDeadLetters: t.field({
    type: DeadLetterReplaysType,
    description:
      "Replays dead letters, the oldest first and one after another in each sink. A sink that is down gets one letter's retries and three more attempts; its other letters are left as they are.",
    args: {
      network: t.arg.id({ description: "The network whose letters are replayed." }),
      sink: t.arg.id({ required: false, description: "Only letters to this sink." }),
      monitor: t.arg.id({ required: false, description: "Only letters of this monitor." }),
      first: t.arg.int({
        required: false,
        defaultValue: 500,
        description: "The most letters that are sent, 1 to 10000; those that cannot be replayed are passed over.",
      }),
      after: t.arg.string({
        required: false,
        description: "Only letters behind this one: an `endCursor`, of a bulk replay or of a list.",
      }),
    },
    resolve: (_, { network, sink, monitor, first, after }, context) => {
      context.views.forget()
      const count = replayCount(first)
      return run(
        context,
        DeadLetters.use((letters) => letters.replayAll({ network, ...defined({ sink, monitor }) }, count, after)),
      )
    },
  }),
  discardDeadLetter: t.boolean({
    description:
      "Gives a dead letter up unsent. The sink is still told if the chain takes the match back: it may have been heard.",
    args: { id: t.arg.id({ description: "The letter's id." }) },
    resolve: (_, { id }, context) => {
      context.views.forget()
      return run(context, DeadLetters.use((letters) => letters.discard(id)).pipe(Effect.as(true)))
    },
  }),
  discardDeadLetters: t.int({
    description: "Gives up all dead letters that the arguments name, unsent; answers how many.",
    args: {
      network: t.arg.id({ description: "The network whose letters are discarded." }),
      sink: t.arg.id({ required: false, description: "Only letters to this sink." }),
      monitor: t.arg.id({ required: false, description: "Only letters of this monitor." }),
      kind: t.arg({ type: DeliveryKindType, required: false, description: "Only letters of this kind." }),
      ended: t.arg.boolean({ required: false, description: ENDED }),
    },
    resolve: (_, { network, sink, monitor, kind, ended }, context) => {
      context.views.forget()
      return run(
        context,
        DeadLetters.use((letters) =>
          letters.discardAll({ network, ...defined({ sink, monitor }), ...kindFilter({ kind, ended }) }),
        ),
      )
    },
  }),
  offerRetractions: t.int({
    description:
      "Makes the retractions owed again that died at a sink; answers how many. They are sent in their turn, and what fails again is a dead letter again. Those of a match that stands again are left. A paused network sends them when it goes on. CONFLICT while the sink is paused or missing.",
    args: {
      network: t.arg.id({ description: "The network that the matches are of." }),
      sink: t.arg.id({ description: "The sink that still owes its receiver the retractions." }),
    },
    resolve: (_, { network, sink }, context) => {
      context.views.forget()
      return run(
        context,
        DeadLetters.use((letters) => letters.offerRetractions(network, sink)),
      )
    },
  }),
}))
