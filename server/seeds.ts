import { Context, Effect, FileSystem, Path, type PlatformError, Schema, type Scope, Stream } from "effect"
import { Problem } from "../core/model/problem.ts"
import type { StorageError } from "../core/storage/error.ts"
import type { ResourceKind } from "../core/storage/stored.ts"

/** A seed file as it was read; `path` is relative to the seeds directory, with `/`. */
export interface SeedFile {
  readonly kind: ResourceKind
  readonly path: string
  readonly text: string
}

/** Seed files were refused; nothing was changed. A problem's `path` begins with the file. */
export class SeedsRefused extends Schema.TaggedError<SeedsRefused>()("SeedsRefused", {
  problems: Schema.Array(Problem),
}) {
  override get message() {
    return [
      "seed files were refused, and nothing was changed:",
      ...this.problems.map(({ path, message }) => `  ${path === "" ? "" : `${path}: `}${message}`),
    ].join("\n")
  }
}

/** Takes a whole set of seed files in one transaction, or none of them; `check` says whether it would. */
export class SeedTarget extends Context.Service<
  SeedTarget,
  {
    readonly apply: (files: ReadonlyArray<SeedFile>) => Effect.Effect<void, SeedsRefused | StorageError>
    readonly check: (files: ReadonlyArray<SeedFile>) => Effect.Effect<void, SeedsRefused | StorageError>
  }
>()("blockwatcher/SeedTarget") {}

const FOLDERS: ReadonlyArray<readonly [folder: string, kind: ResourceKind]> = [
  ["networks", "network"],
  ["monitors", "monitor"],
  ["sinks", "sink"],
]

/** What of a seeds directory could be read, and what could not. */
interface ReadSeeds {
  readonly files: ReadonlyArray<SeedFile>
  readonly problems: ReadonlyArray<Problem>
}

const readDirectory = Effect.fnUntraced(function* (
  directory: string,
): Effect.fn.Return<ReadSeeds, never, FileSystem.FileSystem | Path.Path> {
  const fileSystem = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const files: Array<SeedFile> = []
  const problems: Array<Problem> = []
  yield* warnOfMisplaced(directory)
  for (const [folder, kind] of FOLDERS) {
    const names = yield* fileSystem.readDirectory(paths.join(directory, folder)).pipe(
      Effect.catchIf(isMissing, () => Effect.succeed<Array<string>>([])),
      Effect.catchTag("PlatformError", (error) => {
        problems.push({ path: folder, message: `cannot be read: ${error.message}` })
        return Effect.succeed<Array<string>>([])
      }),
    )
    for (const name of names.filter((name) => name.endsWith(".json")).toSorted()) {
      const path = `${folder}/${name}`
      yield* fileSystem.readFileString(paths.join(directory, folder, name)).pipe(
        Effect.match({
          onSuccess: (text) => files.push({ kind, path, text }),
          onFailure: (error) => problems.push({ path, message: `cannot be read: ${error.message}` }),
        }),
      )
    }
  }
  return { files, problems }
})

/**
 * Reads `networks/*.json`, `monitors/*.json` and `sinks/*.json`, in the order of their names. Where some cannot be read,
 * the others are judged all the same: all problems are told at once.
 */
export const readSeeds = Effect.fnUntraced(function* (
  directory: string,
  check: SeedTarget["Service"]["check"],
): Effect.fn.Return<ReadonlyArray<SeedFile>, SeedsRefused | StorageError, FileSystem.FileSystem | Path.Path> {
  const { files, problems } = yield* readDirectory(directory)
  if (problems.length === 0) return files
  const others = yield* check(files).pipe(
    Effect.as([]),
    Effect.catchTag("SeedsRefused", (refused) => Effect.succeed(refused.problems)),
  )
  return yield* new SeedsRefused({ problems: [...problems, ...others] })
})

/** A folder that is misspelt would be left out without a word. */
const warnOfMisplaced = Effect.fnUntraced(function* (directory: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const known = FOLDERS.map(([folder]) => folder)
  const names = yield* fileSystem.readDirectory(directory).pipe(Effect.orElseSucceed(() => []))
  for (const name of names.filter((name) => !known.includes(name) && !name.startsWith("."))) {
    yield* Effect.logWarning(`${name} in ${directory} is not read: seeds lie in ${known.join("/, ")}/`)
  }
})

const isMissing = (error: PlatformError.PlatformError): boolean => error.reason._tag === "NotFound"

/** Editors write a file in several steps, and a checkout changes many: a set is read once it has been still so long. */
const QUIET = "200 millis"

/**
 * Applies the seed files now, and again whenever they changed, as long as the scope lives. A refusal now is the error
 * of this effect; later ones are logged and change nothing.
 */
export const followSeeds = Effect.fnUntraced(function* (
  directory: string,
): Effect.fn.Return<void, SeedsRefused | StorageError, SeedTarget | FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const fileSystem = yield* FileSystem.FileSystem
  const target = yield* SeedTarget
  const initial = yield* readSeeds(directory, target.check)
  yield* target.apply(initial)
  yield* Effect.logInfo(`applied ${initial.length} seed files of ${directory}`)
  let last = JSON.stringify(initial)

  const reapply = Effect.gen(function* () {
    const files = yield* readSeeds(directory, target.check)
    const content = JSON.stringify(files)
    if (content === last) return
    yield* target.apply(files)
    last = content
    yield* Effect.logInfo(`applied ${files.length} seed files of ${directory} after a change`)
  }).pipe(Effect.catchTags({ SeedsRefused: logRefusal, StorageError: logRefusal }))

  yield* Stream.make(undefined).pipe(
    // What changed between the first read and the start of the watch is found by one more read.
    Stream.concat(fileSystem.watch(directory, { recursive: true })),
    Stream.debounce(QUIET),
    Stream.runForEach(() => reapply),
    Effect.catchTag("PlatformError", (error) =>
      Effect.logWarning(`${directory} cannot be watched; restart to apply changed seed files: ${error.message}`),
    ),
    Effect.forkScoped,
  )
})

const logRefusal = (error: SeedsRefused | StorageError) => Effect.logError(error.message)
