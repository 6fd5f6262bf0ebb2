import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Effect, type Scope } from "effect"
import { type BrowserContext, chromium } from "playwright-core"

const run = promisify(execFile)

/** Lets the package unpack its shared libraries as well, which a machine without a desktop may lack. */
const WITH_LIBRARIES = { AWS_EXECUTION_ENV: "AWS_Lambda_nodejs22.x" }

/** The package's own file looks for its fonts in /tmp; without any font the browser does not live. */
const fontsOf = (folder: string): string => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}/fonts</dir>
  <cachedir>${folder}/font-cache</cachedir>
</fontconfig>
`

/**
 * Unpacks the browser of the installed package, once a machine: into a folder of its own that is renamed when it is
 * whole, so that test files that run at the same time do not see half of it.
 */
const unpack = async (): Promise<string> => {
  const entry = createRequire(import.meta.url).resolve("@sparticuz/chromium")
  const { version } = JSON.parse(await readFile(join(dirname(entry), "../package.json"), "utf8")) as { version: string }
  const folder = join(tmpdir(), `blockwatcher-chromium-${version}`)
  if (existsSync(folder)) return folder
  const fresh = await mkdtemp(`${folder}-`)
  await run(
    process.execPath,
    ["--input-type=module", "-e", "await (await import('@sparticuz/chromium')).default.executablePath()"],
    { cwd: import.meta.dirname, env: { ...process.env, ...WITH_LIBRARIES, TMPDIR: fresh } },
  )
  await writeFile(join(fresh, "fonts.conf"), fontsOf(folder))
  // Another process may have been faster; its copy is as good.
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }))
  return folder
}

/** What the browser runs with: the fonts of the package, and its libraries only where the machine lacks some. */
const environment = async (folder: string): Promise<Record<string, string>> => {
  const fonts = { FONTCONFIG_FILE: join(folder, "fonts.conf"), HOME: folder }
  const libraries = { LD_LIBRARY_PATH: join(folder, "al2023/lib") }
  return run(join(folder, "chromium"), ["--version"]).then(
    () => fonts,
    () => ({ ...fonts, ...libraries }),
  )
}

const isLoopback = (url: string): boolean =>
  !/^(https?|wss?):/.test(url) || /^(127\.|localhost$|\[::1\]$)/.test(new URL(url).hostname)

/** A browser with a profile of its own. */
export interface TestBrowser {
  readonly context: BrowserContext
  /** Every URL beyond this machine that a page asked for; none of them is reached. */
  readonly outside: ReadonlyArray<string>
}

/** Starts Chromium; it ends with the scope. */
export const launchBrowser: Effect.Effect<TestBrowser, never, Scope.Scope> = Effect.gen(function* () {
  const browser = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = await unpack()
      return chromium.launch({
        executablePath: join(folder, "chromium"),
        env: await environment(folder),
        args: [
          "--no-sandbox",
          "--disable-gpu",
          "--disable-dev-shm-usage",
          "--disable-background-networking",
          "--disable-component-update",
          "--disable-domain-reliability",
          "--disable-sync",
          "--no-first-run",
          "--no-pings",
          "--font-render-hinting=none",
          "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        ],
      })
    }),
    (browser) => Effect.promise(() => browser.close()),
  )
  const outside: Array<string> = []
  const context = yield* Effect.promise(() => browser.newContext({ viewport: { width: 1280, height: 800 } }))
  yield* Effect.promise(() =>
    context.route(
      (url) => !isLoopback(url.href),
      (route) => {
        outside.push(route.request().url())
        return route.abort()
      },
    ),
  )
  context.on("page", (page) =>
    page.on("websocket", (socket) => {
      if (!isLoopback(socket.url())) outside.push(socket.url())
    }),
  )
  return { context, outside }
})
