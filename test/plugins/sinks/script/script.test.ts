import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import script, { ScriptsDirectory } from "../../../../plugins/sinks/script/index.ts"
import { aMatch, configProblems, makeSink, matchDelivery, pluginServices } from "../sink.ts"

const PATH = "/usr/local/bin:/usr/bin:/bin"

const services = (env: Readonly<Record<string, string>> = {}) => Effect.provide(pluginServices({ PATH, ...env }))

/** A scripts directory inside a directory that is its own. */
const scriptsDirectory = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync(join(tmpdir(), "blockwatcher-scripts-"))
    const scripts = join(root, "scripts")
    mkdirSync(scripts)
    return { root, scripts }
  }),
  ({ root }) => Effect.sync(() => rmSync(root, { recursive: true })),
)

const write = (path: string, lines: string, mode = 0o755) => {
  writeFileSync(path, lines)
  chmodSync(path, mode)
}

const make = (scripts: string | null, config: Record<string, unknown>) =>
  makeSink(script, config).pipe(Effect.provideService(ScriptsDirectory, scripts))

/** Runs a shell script once and tells what became of the delivery. */
const runShell = (
  body: string,
  options: { readonly config?: Record<string, unknown>; readonly delivery?: ReturnType<typeof matchDelivery> } = {},
) =>
  Effect.gen(function* () {
    const { root, scripts } = yield* scriptsDirectory
    write(join(scripts, "run.sh"), `#!/bin/sh\n${body}\n`)
    const sink = yield* make(scripts, { path: "run.sh", ...options.config })
    const outcome = yield* sink
      .deliver(...(options.delivery ?? matchDelivery(aMatch("m1"))))
      .pipe(Effect.match({ onSuccess: () => ({ tag: "delivered", reason: "" }), onFailure: tell }))
    const read = (name: string) => readFileSync(join(scripts, name), "utf8")
    return { ...outcome, read, root, scripts }
  })

const tell = ({ _tag, reason }: { readonly _tag: string; readonly reason: string }) => ({ tag: _tag, reason })

/** Waits until a process is no more. */
const gone = (pid: number) => {
  const alive = () => {
    try {
      return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z"
    } catch {
      return false
    }
  }
  return Effect.suspend(() => (alive() ? Effect.fail("alive") : Effect.void)).pipe(Effect.eventually)
}

/** Waits until a file exists and ends with a newline. */
const written = (path: string) =>
  Effect.callback<string>((resume) => {
    const check = () => {
      if (!readdirSync(dirname(path)).some((name) => path.endsWith(`/${name}`))) return
      const text = readFileSync(path, "utf8")
      if (!text.endsWith("\n")) return
      watcher.close()
      resume(Effect.succeed(text))
    }
    const watcher = watch(dirname(path), check)
    check()
    return Effect.sync(() => watcher.close())
  })

describe("a script", () => {
  it.live("gets the canonical JSON as one line, its arguments, and the scripts directory to work in", () =>
    Effect.gen(function* () {
      const delivery = matchDelivery(aMatch("m1", { note: 'ünï $HOME `id` "quoted"' }))
      const { tag, read, scripts } = yield* runShell(
        'cat > stdin; pwd > pwd; for arg in "$@"; do echo "$arg"; done > args',
        { config: { args: ["--to", "two words", "$HOME; id", ""] }, delivery },
      )
      assert.strictEqual(tag, "delivered")
      assert.strictEqual(read("stdin"), `${delivery[1].body}\n`)
      assert.strictEqual(read("pwd"), `${scripts}\n`)
      assert.strictEqual(read("args"), "--to\ntwo words\n$HOME; id\n\n")
    }).pipe(services()),
  )

  it.live("sees PATH, its own variables, the delivery's id, and nothing else", () =>
    Effect.gen(function* () {
      const { read } = yield* runShell("/usr/bin/env > env", {
        config: { env: { PLAIN: "a b", SECRET: "env:TOKEN" } },
        delivery: matchDelivery(aMatch("m1"), { nonce: "n1" }),
      })
      const names = read("env")
        .trim()
        .split("\n")
        .filter((line) => !/^(PWD|SHLVL|_|OLDPWD)=/.test(line))
      assert.deepStrictEqual(names.toSorted(), [
        "BLOCKWATCHER_ATTEMPT=n1",
        "BLOCKWATCHER_DELIVERY_ID=m1",
        `PATH=${PATH}`,
        "PLAIN=a b",
        "SECRET=hunter2",
      ])
    }).pipe(services({ TOKEN: "hunter2", UNRELATED: "1" })),
  )

  it.live.each([
    { body: "exit 0", tag: "delivered", says: /^$/ },
    { body: "echo warned >&2; exit 0", tag: "delivered", says: /^$/ },
    { body: "exit 1", tag: "Transient", says: /^script run\.sh: exit code 1$/ },
    { body: "exit 75", tag: "Transient", says: /^script run\.sh: exit code 75$/ },
    {
      body: "echo no such channel >&2; exit 65",
      tag: "Permanent",
      says: /^script run\.sh: exit code 65: no such channel$/,
    },
    { body: "kill -TERM $$", tag: "Transient", says: /^script run\.sh: ended by SIGTERM$/ },
    {
      body: "no-such-program",
      tag: "Transient",
      says: /^script run\.sh: exit code 127: .*no-such-program: not found$/,
    },
  ])("$body is $tag", ({ body, tag, says }) =>
    Effect.gen(function* () {
      const outcome = yield* runShell(body)
      assert.strictEqual(outcome.tag, tag)
      assert.match(outcome.reason, says)
    }).pipe(services()),
  )

  it.live("stands in the reason with the end of its stderr, on one line and without its secrets", () =>
    Effect.gen(function* () {
      const { reason } = yield* runShell(
        'head -c 5000 /dev/zero | tr "\\0" x >&2; printf "\\nbad $KEY\\033[0m\\n" >&2; exit 1',
        {
          config: { env: { KEY: "env:KEY" } },
        },
      )
      assert.match(reason, /^script run\.sh: exit code 1: x{188,190} bad \*\*\* \[0m$/)
    }).pipe(services({ KEY: "hunter2" })),
  )

  it.live("may ignore its input or close it early, however large the event is", () =>
    Effect.gen(function* () {
      const delivery = matchDelivery(aMatch("m1", { data: "x".repeat(3_000_000) }))
      assert.strictEqual((yield* runShell("exit 0", { delivery })).tag, "delivered")
      assert.strictEqual((yield* runShell("exec 0<&-; sleep 0.1; exit 0", { delivery })).tag, "delivered")
      const counted = yield* runShell("wc -c > count", { delivery })
      assert.strictEqual(Number(counted.read("count")), Buffer.byteLength(delivery[1].body) + 1)
    }).pipe(services()),
  )

  it.live("that prints without an end is killed when its time is up, with its whole group", () =>
    Effect.gen(function* () {
      const { tag, reason, read } = yield* runShell(
        'sleep 1000 & echo $! > child; while :; do echo "to stdout and on"; echo "to stderr and on" >&2; done',
        { config: { timeout_ms: 1_500 } },
      )
      assert.strictEqual(tag, "Transient")
      assert.match(reason, /^script run\.sh: killed, it had not ended within 1500 ms: .*to stderr and on/)
      assert.isAtMost(reason.length, 300)
      yield* gone(Number(read("child")))
    }).pipe(services()),
  )

  it.live("is killed with its whole group when the delivery is interrupted", () =>
    Effect.gen(function* () {
      const { scripts } = yield* scriptsDirectory
      write(join(scripts, "run.sh"), "#!/bin/sh\nsleep 1000 &\necho $$ $! > pids\nwait\n")
      const sink = yield* make(scripts, { path: "run.sh" })
      const fiber = yield* Effect.forkChild(sink.deliver(...matchDelivery(aMatch("m1"))))
      const pids = (yield* written(join(scripts, "pids"))).trim().split(" ").map(Number)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(pids.length, 2)
      for (const pid of pids) yield* gone(pid)
    }).pipe(services()),
  )

  it.live("leaves nobody behind when it exits, and is not waited for beyond that", () =>
    Effect.gen(function* () {
      const { tag, read } = yield* runShell("sleep 1000 & echo $! > child; exit 0")
      assert.strictEqual(tag, "delivered")
      yield* gone(Number(read("child")))
    }).pipe(services()),
  )

  it.live("that cannot be started is Transient and says why", () =>
    Effect.gen(function* () {
      const { scripts } = yield* scriptsDirectory
      const path = join(scripts, "run.sh")
      write(path, "#!/no/such/shell\n")
      const sink = yield* make(scripts, { path: "run.sh" })
      const attempt = sink.deliver(...matchDelivery(aMatch("m1"))).pipe(Effect.flip, Effect.map(tell))
      assert.deepStrictEqual(yield* attempt, {
        tag: "Transient",
        reason: "script run.sh: could not be started (ENOENT); does it begin with #! and a program?",
      })
      rmSync(path)
      const missing = yield* attempt
      assert.strictEqual(missing.tag, "Transient")
      assert.match(missing.reason, /^script: run\.sh is not in the scripts directory /)
    }).pipe(services()),
  )

  it.live("whose arguments are too long for the system is Transient", () =>
    Effect.gen(function* () {
      const { tag, reason } = yield* runShell("exit 0", { config: { args: ["x".repeat(3_000_000)] } })
      assert.strictEqual(tag, "Transient")
      assert.match(reason, /could not be started \(E2BIG\)/)
    }).pipe(services()),
  )
})

const refusal = (scripts: string | null, path: string) =>
  make(scripts, { path }).pipe(
    Effect.flip,
    Effect.map(({ message }) => message),
  )

describe("the place of a script", () => {
  it.live("is nowhere unless a scripts directory was given", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* refusal(null, "run.sh"),
        "script sinks are off; set BLOCKWATCHER_SCRIPTS_DIR to the directory that holds the scripts",
      )
      assert.match(
        yield* refusal("/no/such/directory", "run.sh"),
        /^path: the scripts directory \/no\/such\/directory cannot be/,
      )
    }).pipe(services()),
  )

  it.live("is inside the directory, symbolic links followed", () =>
    Effect.gen(function* () {
      const { root, scripts } = yield* scriptsDirectory
      write(join(root, "outside.sh"), "#!/bin/sh\nexit 0\n")
      write(join(scripts, "inside.sh"), "#!/bin/sh\nexit 0\n")
      write(join(scripts, "plain.sh"), "#!/bin/sh\nexit 0\n", 0o644)
      mkdirSync(join(scripts, "sub"))
      mkdirSync(join(root, "scripts-too"))
      write(join(root, "scripts-too", "run.sh"), "#!/bin/sh\nexit 0\n")
      symlinkSync(join(root, "outside.sh"), join(scripts, "link-out.sh"))
      symlinkSync(root, join(scripts, "sub", "up"))
      symlinkSync(join(root, "scripts-too", "run.sh"), join(scripts, "link-sibling.sh"))
      symlinkSync("../inside.sh", join(scripts, "sub", "link-in.sh"))

      for (const path of ["inside.sh", "sub/link-in.sh"]) yield* make(scripts, { path })
      for (const path of ["link-out.sh", "sub/up/outside.sh", "link-sibling.sh"]) {
        assert.match(yield* refusal(scripts, path), /leads out of the scripts directory/)
      }
      assert.match(yield* refusal(scripts, "none.sh"), /^path: none\.sh is not in the scripts directory .* \(ENOENT\)$/)
      assert.match(yield* refusal(scripts, "sub"), /^path: sub is not a file; name an executable file$/)
      assert.match(yield* refusal(scripts, "plain.sh"), /make it executable/)
    }).pipe(services()),
  )

  it.live("is checked again at each delivery", () =>
    Effect.gen(function* () {
      const { root, scripts } = yield* scriptsDirectory
      write(join(root, "outside.sh"), "#!/bin/sh\ntouch ran\n")
      write(join(scripts, "run.sh"), "#!/bin/sh\nexit 0\n")
      const sink = yield* make(scripts, { path: "run.sh" })
      rmSync(join(scripts, "run.sh"))
      symlinkSync(join(root, "outside.sh"), join(scripts, "run.sh"))
      const error = yield* Effect.flip(sink.deliver(...matchDelivery(aMatch("m1"))))
      assert.match(error.reason, /leads out of the scripts directory/)
      assert.notInclude(readdirSync(scripts), "ran")
    }).pipe(services()),
  )

  it.each(["/bin/sh", "../run.sh", "sub/../../run.sh", "", "a\0b"])("may not be written as '%s'", (path) => {
    assert.match(configProblems(script, { path }).join(), /^path: /)
  })
})

describe("a script's config", () => {
  it("is refused with all its problems", () => {
    const config = {
      path: "run.sh",
      args: ["a\0b"],
      env: { "A-B": "1", BLOCKWATCHER_DELIVERY_ID: "x", A: "env:", B: "a\0" },
    }
    assert.deepStrictEqual(configProblems(script, config), [
      "args.0: an argument may not hold the character NUL",
      "env.A-B: this is no name of a variable; use letters, digits and '_'",
      "env.BLOCKWATCHER_DELIVERY_ID: blockwatcher sets variables with this prefix itself; use another name",
      "env.A: this is no valid reference; write env:NAME or file:PATH",
      "env.B: a variable may not hold the character NUL",
    ])
  })

  it.live("that names missing secrets is refused with these and with the missing script", () =>
    Effect.gen(function* () {
      const { scripts } = yield* scriptsDirectory
      const error = yield* Effect.flip(make(scripts, { path: "no.sh", env: { A: "env:MISSING" } }))
      assert.match(
        error.message,
        /^path: no\.sh is not in the scripts directory .*; env\.A: secret env:MISSING: MISSING is not/,
      )
    }).pipe(services()),
  )
})
