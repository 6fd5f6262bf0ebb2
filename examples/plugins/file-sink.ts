import { open } from "node:fs/promises"
import { isAbsolute } from "node:path"
import { Effect, Schema, Semaphore } from "effect"
import { Permanent, PluginRefused, SinkPlugin, Transient } from "blockwatcher/plugin"

/*
 * Appends one line of JSON for each delivery to a file, and succeeds only when the line is on the disk.
 *
 *   { "id": "archive", "module": "file", "config": { "path": "/var/lib/blockwatcher/matches.jsonl" } }
 *
 * A crash between the write and its record repeats a delivery: readers drop lines whose `id` they have seen.
 */

const Config = Schema.Struct({ path: Schema.NonEmptyString })

/** What passes by itself or is mended outside without anybody touching the config: a full or failing disk. */
const passing = new Set(["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "EBUSY", "EAGAIN", "ENOENT"])

const failure = (error: unknown) => {
  const { code, message } = error as NodeJS.ErrnoException
  return passing.has(code ?? "") ? new Transient({ reason: message }) : new Permanent({ reason: message })
}

const append = (path: string, line: string): Effect.Effect<void, Transient | Permanent> =>
  Effect.acquireUseRelease(
    Effect.tryPromise({ try: () => open(path, "a+"), catch: failure }),
    (file) =>
      Effect.tryPromise({
        try: async () => {
          const { size } = await file.stat()
          const last = await file.read({ buffer: Buffer.alloc(1), position: Math.max(0, size - 1) })
          // A crash or a full disk can leave half a line; it must not swallow this one.
          const torn = last.bytesRead === 1 && last.buffer[0] !== 0x0a
          await file.appendFile(torn ? `\n${line}` : line)
          await file.sync()
        },
        catch: failure,
      }),
    (file) => Effect.promise(() => file.close()),
  )

export default SinkPlugin.make({
  name: "file",
  config: Config,
  make: Effect.fnUntraced(function* ({ path }) {
    // Everything that can be judged now is judged here; nothing is created or written.
    if (!isAbsolute(path)) return yield* new PluginRefused({ reason: `path must be absolute, not ${path}` })
    const turn = yield* Semaphore.make(1)
    return {
      timeoutMs: 10_000,
      // `body` is the event as JSON, the same bytes on every attempt.
      deliver: (_event, { id, body }) =>
        turn.withPermit(append(path, `{"id":${JSON.stringify(id)},"event":${body}}\n`)),
    }
  }),
})
