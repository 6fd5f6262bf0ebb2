import type { IncomingMessage, ServerResponse } from "node:http"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { Effect } from "effect"
import { GRAPHQL_PATH } from "../graphql/yoga.ts"

const QUERY = `# What runs at present: press the button, or
# Ctrl-Enter. The next tabs follow what happens
# live, and add a monitor.
query Overview {
  networks {
    id
    state
    error
    checkpoint { cursor { primary } updatedAt }
    head { primary }
    lag
    monitors { id predicate sinks { id module } }
  }
  matches(first: 5) {
    edges { node { id monitor event time } }
    pageInfo { endCursor hasNextPage }
  }
}
`

const SUBSCRIPTION = `# Each match as it is found. To go on where you
# were, pass the last position: (after: "...").
subscription Matches {
  matches {
    position
    match { id monitor event }
  }
}
`

const RETRACTIONS = `# Each match that is taken back, because the
# chain dropped the block that it was in.
subscription Retractions {
  retractions {
    position
    monitor
    matchId
    cursor { primary }
  }
}
`

const MUTATION = `# Adds a monitor. Run it again with another
# predicate to change it; with validateOnly: true
# it is only checked.
mutation WatchTransfers {
  putMonitor(
    input: {
      id: "my-transfers"
      network: "devnet"
      selector: {
        kind: "event"
        event: "event Transfer(address indexed from, address indexed to, uint256 value)"
      }
      predicate: "args.value > 0"
      sinks: []
    }
  ) {
    id
    revision
    predicate
    network { id state }
  }
}
`

/** The page may load and reach nothing but this server. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'unsafe-inline' 'unsafe-eval' blob:",
  "worker-src blob:",
  "style-src 'unsafe-inline'",
  "img-src data:",
  "font-src data:",
  "connect-src 'self' ws: wss:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ")

/** GraphiQL moves a tab away under the pointer that presses it for the first time, and the click is lost. */
const TABS_STAY = "<style>.graphiql-tab:focus-within{transform:none!important}</style></head>"

const render = async (hasToken: boolean): Promise<{ readonly plain: Buffer; readonly gzipped: Buffer }> => {
  const { renderGraphiQL } = await import("@graphql-yoga/render-graphiql")
  const headers = hasToken ? JSON.stringify({ authorization: "Bearer <the API token>" }, null, 2) : null
  const plain = Buffer.from(
    renderGraphiQL({
      title: "blockwatcher",
      endpoint: GRAPHQL_PATH,
      subscriptionsProtocol: "WS",
      ...(headers === null ? {} : { defaultHeaders: headers }),
      defaultTabs: [QUERY, SUBSCRIPTION, RETRACTIONS, MUTATION].map((query) => ({ query, headers })),
    }).replace("</head>", TABS_STAY),
  )
  return { plain, gzipped: await promisify(gzip)(plain) }
}

/** Whether a request is a browser that opens the page. */
export const wantsGraphiql = ({ method, headers }: IncomingMessage): boolean =>
  (method === "GET" || method === "HEAD") && (headers.accept ?? "").includes("text/html")

/** Sends the page. It is made once, at its first use: the module is large and most servers never show it to anyone. */
export const makeGraphiql = (hasToken: boolean) =>
  Effect.map(Effect.cached(Effect.promise(() => render(hasToken))), (page) =>
    Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
      const { plain, gzipped } = yield* page
      const compressed = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""))
      const body = compressed ? gzipped : plain
      response.writeHead(200, {
        "content-type": "text/html; charset=utf-8",
        "content-length": body.byteLength,
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        vary: "accept, accept-encoding",
        ...(compressed ? { "content-encoding": "gzip" } : {}),
      })
      response.end(request.method === "HEAD" ? undefined : body)
    }),
  )
