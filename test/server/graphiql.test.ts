import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Page } from "playwright-core"
import { assert, describe } from "vitest"
import { launchBrowser } from "../support/browser.ts"
import { emitted } from "./fake-engine.ts"
import { serveFake, until } from "./serve-fake.ts"

const serve = (options: Parameters<typeof serveFake>[0] = {}) =>
  Effect.acquireRelease(
    Effect.promise(() => serveFake(options)),
    (server) => Effect.promise(() => server.close()),
  )

/** The button that starts an operation, and ends the one that runs. */
const button = (page: Page, does: "Execute" | "Stop") =>
  page.locator(`.graphiql-execute-button[aria-label^="${does} query"]`)

/**
 * Opens a tab while nothing runs, and waits until its operation is what an execution would run: GraphiQL takes note of the
 * name of an editor's operation, and stores its text, a while after it has changed.
 */
const openTab = async (page: Page, name: string) => {
  await button(page, "Execute").waitFor()
  await page.locator(".graphiql-tab-button", { hasText: name }).click()
  await page.locator(".graphiql-tab-active", { hasText: name }).waitFor()
  await page.waitForFunction(`localStorage.getItem("graphiql:query")?.includes(${JSON.stringify(name)})`)
}
const execute = (page: Page) => button(page, "Execute").click()
const stop = (page: Page) => button(page, "Stop").click()

/** Waits until the result pane, which holds non-breaking spaces, shows a text. */
const shows = (page: Page, text: string) =>
  page.waitForFunction(
    `document.querySelector(".result-window")?.textContent.replaceAll("\\u00a0", " ").includes(${JSON.stringify(text)})`,
  )

describe("GraphiQL in a browser", () => {
  it.live("queries, subscribes over WebSocket and changes resources, and asks nothing of the internet", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { context, outside } = yield* launchBrowser
      yield* Effect.promise(async () => {
        const page = await context.newPage()
        const troubles: Array<string> = []
        const sockets: Array<string> = []
        page.on("pageerror", (error) => troubles.push(error.message))
        page.on("console", (message) => message.type() === "error" && troubles.push(message.text()))
        page.on("websocket", (socket) => sockets.push(socket.url()))
        await page.goto(server.url)

        await openTab(page, "Overview")
        await execute(page)
        await shows(page, `"state": "RUNNING"`)

        await openTab(page, "Matches")
        await execute(page)
        await until(() => server.engine.running === 1, "the subscription runs")
        server.engine.publish(emitted(1), emitted(2))
        await shows(page, `"id": "match-2"`)
        assert.deepEqual(sockets, [server.url.replace("http", "ws")])
        await stop(page)
        await until(() => server.engine.running === 0, "the subscription was stopped")

        await openTab(page, "WatchTransfers")
        await execute(page)
        await shows(page, `"id": "my-transfers"`)
        assert.include(
          server.engine.monitors.map(({ id }) => id),
          "my-transfers",
        )
        assert.deepEqual(troubles, [])
      })
      assert.deepEqual(outside, [])
    }).pipe(Effect.scoped),
  )

  it.live("brings the token, once it is entered as a header, with queries and subscriptions", () =>
    Effect.gen(function* () {
      const server = yield* serve({ token: Redacted.make("s3cret") })
      const { context } = yield* launchBrowser
      yield* Effect.promise(async () => {
        const page = await context.newPage()
        await page.goto(server.url)
        await openTab(page, "Matches")
        await execute(page)
        await shows(page, "UNAUTHENTICATED")
        await page.getByRole("button", { name: "Headers" }).click()
        await page.locator(".graphiql-editor-tool .graphiql-editor:visible .view-lines").click()
        await page.keyboard.press("Control+A")
        // The editor closes the brace itself.
        await page.keyboard.insertText(`{ "authorization": "Bearer s3cret"`)
        await execute(page)
        await until(() => server.engine.running === 1, "the subscription runs")
        server.engine.publish(emitted(7))
        await shows(page, `"id": "match-7"`)
      })
    }).pipe(Effect.scoped),
  )
})
