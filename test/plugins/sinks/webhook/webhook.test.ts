import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Webhook } from "standardwebhooks"
import type { DeliveryError } from "../../../../core/plugin/error.ts"
import webhook from "../../../../plugins/sinks/webhook/index.ts"
import { type Answer, respond, startReceiver } from "../../../support/receiver.ts"
import {
  aMatch,
  configProblems,
  digestDelivery,
  makeSink,
  matchDelivery,
  pluginServices,
  retractedDelivery,
} from "../sink.ts"

const services = Effect.provide(pluginServices())

const deliverTo = (config: Record<string, unknown>, delivery = matchDelivery(aMatch("m1"))) =>
  Effect.scoped(Effect.flatMap(makeSink(webhook, config), (sink) => sink.deliver(...delivery)))

const failureOf = (config: Record<string, unknown>) => Effect.flip(deliverTo(config)) as Effect.Effect<DeliveryError>

const tagOf = ({ _tag }: { readonly _tag: string }) => _tag

describe("a webhook", () => {
  it.live("posts the canonical JSON with the headers that receivers deduplicate on", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      const sink = yield* makeSink(webhook, {
        url: `${receiver.origin}/hooks/1?a=b`,
        headers: { "X-Source": "blockwatcher", Authorization: "env:TOKEN" },
      })
      const delivery = matchDelivery(aMatch("m1"))
      yield* sink.deliver(...delivery)
      yield* sink.deliver(...retractedDelivery("m1"))
      const digest = digestDelivery([aMatch("m1"), aMatch("m2")])
      yield* sink.deliver(...digest)
      const [first, second, third] = receiver.requests
      assert.strictEqual(first?.method, "POST")
      assert.strictEqual(first?.path, "/hooks/1?a=b")
      assert.strictEqual(first?.body.toString(), delivery[1].body)
      assert.strictEqual(first?.headers["content-type"], "application/json")
      assert.strictEqual(first?.headers["idempotency-key"], "m1")
      assert.strictEqual(first?.headers["webhook-id"], "m1")
      assert.strictEqual(first?.headers["x-source"], "blockwatcher")
      assert.strictEqual(first?.headers["authorization"], "Bearer hunter2")
      assert.strictEqual(second?.body.toString(), '{"type":"retracted","match_id":"m1"}')
      assert.strictEqual(second?.headers["idempotency-key"], "m1-r")
      assert.strictEqual(third?.body.toString(), digest[1].body)
      assert.strictEqual(third?.headers["webhook-id"], digest[1].id)
      for (const name of ["webhook-signature", "webhook-timestamp", "blockwatcher-attempt"]) {
        assert.isUndefined(first?.headers[name])
      }
      assert.isAbove(sink.timeoutMs, 10_000)
    }).pipe(Effect.provide(pluginServices({ TOKEN: "Bearer hunter2" }))),
  )

  it.live("tells a replay from a repeat by its nonce, beside the same id", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* deliverTo({ url: receiver.origin }, matchDelivery(aMatch("m1"), { nonce: "n-7", attempt: 3 }))
      assert.strictEqual(receiver.requests[0]?.headers["idempotency-key"], "m1")
      assert.strictEqual(receiver.requests[0]?.headers["blockwatcher-attempt"], "n-7")
    }).pipe(services),
  )

  it.live("takes its URL from a reference", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* deliverTo({ url_secret: "env:URL" }).pipe(
        Effect.provide(pluginServices({ URL: `${receiver.origin}/hidden` })),
      )
      assert.strictEqual(receiver.requests[0]?.path, "/hidden")
    }),
  )

  it.live("lets the user choose another content type", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* deliverTo({ url: receiver.origin, headers: { "Content-Type": "text/plain" }, body_template: "{{ id }}" })
      assert.strictEqual(receiver.requests[0]?.headers["content-type"], "text/plain")
      assert.strictEqual(receiver.requests[0]?.body.toString(), "m1")
    }).pipe(services),
  )
})

describe("a webhook's answer", () => {
  const inAMinute = new Date(Date.now() + 60_000).toUTCString()
  const cases: ReadonlyArray<{ readonly what: string; readonly answer: Answer; readonly tag: string | null }> = [
    { what: "200", answer: respond(200), tag: null },
    { what: "201", answer: respond(201, { body: "created" }), tag: null },
    { what: "204", answer: respond(204), tag: null },
    { what: "301", answer: respond(301, { headers: { location: "/" } }), tag: "Permanent" },
    { what: "302", answer: respond(302, { headers: { location: "/" } }), tag: "Permanent" },
    { what: "304", answer: respond(304), tag: "Permanent" },
    { what: "400", answer: respond(400), tag: "Permanent" },
    { what: "401", answer: respond(401), tag: "Permanent" },
    { what: "404", answer: respond(404), tag: "Permanent" },
    { what: "408", answer: respond(408), tag: "Transient" },
    { what: "409", answer: respond(409), tag: "Transient" },
    { what: "410", answer: respond(410), tag: "Permanent" },
    { what: "413", answer: respond(413), tag: "TooLarge" },
    { what: "422", answer: respond(422), tag: "Permanent" },
    { what: "425", answer: respond(425), tag: "Transient" },
    { what: "429", answer: respond(429), tag: "RateLimited" },
    { what: "429 in seconds", answer: respond(429, { headers: { "retry-after": "7" } }), tag: "RateLimited" },
    { what: "429 by date", answer: respond(429, { headers: { "retry-after": inAMinute } }), tag: "RateLimited" },
    { what: "500", answer: respond(500), tag: "Transient" },
    { what: "502", answer: respond(502), tag: "Transient" },
    { what: "503", answer: respond(503), tag: "Transient" },
    { what: "503 in seconds", answer: respond(503, { headers: { "retry-after": "7" } }), tag: "RateLimited" },
    { what: "a reset", answer: { kind: "reset" }, tag: "Transient" },
    { what: "a cut 200", answer: { kind: "cut", status: 200 }, tag: "Transient" },
    { what: "garbage", answer: { kind: "raw", bytes: "what" }, tag: "Transient" },
    { what: "a hang", answer: { kind: "hang" }, tag: "Transient" },
    { what: "a trickling 200", answer: { kind: "trickle", status: 200 }, tag: "Transient" },
    { what: "an endless 200", answer: { kind: "endless", status: 200 }, tag: null },
    { what: "an endless 500", answer: { kind: "endless", status: 500 }, tag: "Transient" },
    { what: "an endless 400", answer: { kind: "endless", status: 400 }, tag: "Permanent" },
  ]

  it.live.each(cases)("$what is $tag, after one request", ({ answer, tag }) =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.always(answer)
      const neverEnds = answer.kind === "hang" || answer.kind === "trickle"
      const outcome = yield* deliverTo({ url: receiver.origin, timeout_ms: neverEnds ? 300 : 10_000 }).pipe(
        Effect.match({ onSuccess: () => null, onFailure: tagOf }),
      )
      assert.strictEqual(outcome, tag)
      assert.strictEqual(receiver.requests.length, 1)
    }).pipe(services),
  )

  it.live("410 says that the receiver is gone", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.next(respond(410), respond(404))
      const [gone, missing] = [yield* failureOf({ url: receiver.origin }), yield* failureOf({ url: receiver.origin })]
      assert.isTrue("gone" in gone && gone.gone)
      assert.isFalse("gone" in missing)
    }).pipe(services),
  )

  it.live.each([
    { header: "7", least: 7_000, most: 7_000 },
    { header: "0", least: 0, most: 0 },
    { header: inAMinute, least: 30_000, most: 60_000 },
    { header: "Sun, 06 Nov 1994 08:49:37 GMT", least: 0, most: 0 },
    { header: "Sunday, 06-Nov-94 08:49:37 GMT", least: 0, most: 0 },
  ])("Retry-After: $header is $least to $most ms", ({ header, least, most }) =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.always(respond(429, { headers: { "retry-after": header } }))
      const error = yield* failureOf({ url: receiver.origin })
      assert.isTrue("retryAfterMs" in error && error.retryAfterMs !== null)
      if ("retryAfterMs" in error) assert.isTrue(error.retryAfterMs! >= least && error.retryAfterMs! <= most)
    }).pipe(services),
  )

  it.live.each(["soon", "-5", "1.5", "", "99999999999999999999"])("Retry-After: '%s' says nothing", (header) =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.next(respond(429, { headers: { "retry-after": header } }))
      const error = yield* failureOf({ url: receiver.origin })
      assert.isTrue("retryAfterMs" in error && error.retryAfterMs === null)
      receiver.next(respond(503, { headers: { "retry-after": header } }))
      assert.strictEqual(tagOf(yield* failureOf({ url: receiver.origin })), "Transient")
    }).pipe(services),
  )

  it.live("a refused connection is Transient, an address outside the policy Permanent", () =>
    Effect.gen(function* () {
      const { origin } = yield* Effect.scoped(startReceiver())
      const refused = yield* failureOf({ url: `${origin}/secret` }).pipe(services)
      assert.strictEqual(tagOf(refused), "Transient")
      assert.strictEqual(refused.reason, `${origin}: connection refused (ECONNREFUSED)`)
      const denied = yield* failureOf({ url: `${origin}/secret` }).pipe(
        Effect.provide(pluginServices({}, { loopback: false, allow: [] })),
      )
      assert.strictEqual(tagOf(denied), "Permanent")
      assert.match(denied.reason, /the egress policy does not allow 127\.0\.0\.1/)
      assert.notInclude(denied.reason, "secret")
    }),
  )

  it.live("interrupting a delivery gives the connection up", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.always({ kind: "hang" })
      const fiber = yield* Effect.forkChild(deliverTo({ url: receiver.origin }))
      yield* receiver.waitUntil((requests) => requests.length === 1)
      yield* Fiber.interrupt(fiber)
      yield* receiver.waitUntilAbandoned(1)
    }).pipe(services),
  )
})

describe("a webhook's reason", () => {
  it.live("is the status, the origin and the beginning of the body on one line", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.next(respond(500, { body: `no\r\n\u001b[31mspace\u0000${"x".repeat(1_000)}` }), respond(500))
      const { reason } = yield* failureOf({ url: receiver.origin })
      const expected = `HTTP 500 from ${receiver.origin}: no [31mspace xxx`
      assert.strictEqual(reason.slice(0, expected.length), expected)
      assert.strictEqual(reason.length, `HTTP 500 from ${receiver.origin}: `.length + 200)
      assert.strictEqual((yield* failureOf({ url: receiver.origin })).reason, `HTTP 500 from ${receiver.origin}`)
    }).pipe(services),
  )

  it.live("holds no part of the URL and no header's value, even when the receiver repeats them", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.always(({ path, headers }) =>
        respond(400, { body: `no ${path} ${decodeURIComponent(path)} ${Object.values(headers).join(" ")}` }),
      )
      const { reason } = yield* failureOf({
        url: `http://user:passw0rd@127.0.0.1:${receiver.port}/services/T%20SECRET/B12345?key=abcdef9`,
        headers: { "x-plain": "plainvalue", "x-short": "env:SHORT" },
        signing_secrets: ["env:SIGNING"],
      })
      assert.notMatch(reason, /SECRET|B12345|abcdef9|passw0rd|plainvalue|q7/)
      assert.match(reason, /^HTTP 400 from http:\/\/127\.0\.0\.1:\d+: no \*\*\*/)
    }).pipe(Effect.provide(pluginServices({ SHORT: "q7", SIGNING: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }))),
  )
})

describe("a webhook's signatures", () => {
  const SECRETS = { ONE: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", TWO: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY" }

  it.live("verify with each secret over the bytes that were sent, template or not", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      const config = { url: receiver.origin, signing_secrets: ["env:ONE", "env:TWO"] }
      yield* deliverTo(config, matchDelivery(aMatch("m1", { note: "ünïcödé 🚀" })))
      yield* deliverTo({ ...config, body_template: '{"text": {{ event.note | tojson }}}' })
      for (const { headers, body } of receiver.requests) {
        assert.strictEqual(headers["webhook-signature"]?.split(" ").length, 2)
        for (const secret of Object.values(SECRETS)) new Webhook(secret).verify(body.toString(), headers)
        assert.throws(() => new Webhook(SECRETS.ONE).verify(`${body} `, headers))
      }
      assert.strictEqual(receiver.requests.length, 2)
    }).pipe(Effect.provide(pluginServices(SECRETS))),
  )
})

describe("a webhook's template", () => {
  const example =
    '{% if type == "digest" %}{{ matches | length }} matches{% else %}{{ type }}: {{ monitor }}{% endif %}'

  it.live("renders matches, retractions and digests", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      const sink = yield* makeSink(webhook, { url: receiver.origin, body_template: example })
      assert.isUndefined(sink.noDigests)
      const unaware = yield* makeSink(webhook, { url: receiver.origin, body_template: "{{ event.args.value }}" })
      assert.match(unaware.noDigests ?? "", /^body_template does not mention "matches"/)
      yield* sink.deliver(...matchDelivery(aMatch("m1")))
      yield* sink.deliver(...retractedDelivery("m1"))
      yield* sink.deliver(...digestDelivery([aMatch("m1"), aMatch("m2")]))
      assert.deepStrictEqual(
        receiver.requests.map(({ body }) => body.toString()),
        ["match: large-transfers", "retracted: ", "2 matches"],
      )
    }).pipe(services),
  )

  it.live("renders a digest of 10,000 matches", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      const matches = Array.from({ length: 10_000 }, (_, index) => aMatch(`m${index}`))
      const body_template =
        "{% for match in matches %}{{ match.id }} {{ match.event.args.value }} {{ match.monitor | upper }}\n{% endfor %}"
      yield* deliverTo({ url: receiver.origin, body_template }, digestDelivery(matches))
      const lines = receiver.requests[0]?.body.toString().trimEnd().split("\n") ?? []
      assert.strictEqual(lines.length, 10_000)
      assert.strictEqual(lines[9_999], "m9999 115792089237316195423570985008687907853 LARGE-TRANSFERS")
    }).pipe(services),
  )

  it.live("keeps every digit and can write JSON", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* deliverTo({ url: receiver.origin, body_template: "{{ event.args.value }} {{ event | tojson }}" })
      const [value = "", ...json] = receiver.requests[0]?.body.toString().split(" ") ?? []
      assert.strictEqual(value, "115792089237316195423570985008687907853")
      assert.deepStrictEqual(JSON.parse(json.join(" ")), aMatch("m1").event)
    }).pipe(services),
  )

  it.live.each([
    { body_template: "fine\n{% if type %}", says: /^body_template: line 2: syntax error: / },
    { body_template: "{{ }", says: /^body_template: line 1: syntax error: / },
  ])("that does not compile is refused with its line when the sink is made", ({ body_template, says }) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(makeSink(webhook, { url: "https://example.org", body_template }))
      assert.strictEqual(tagOf(error), "PluginRefused")
      assert.match(error.message, says)
      assert.notInclude(error.message, "\n")
    }).pipe(services),
  )

  it.live.each([
    { body_template: "fine\n\n{{ event.no.such }}", says: "body_template: line 3: undefined value" },
    {
      body_template: "{{ type.constructor('return 1')() }}",
      says: "body_template: line 1: unknown method: string has no method named constructor",
    },
    {
      body_template: "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
      says: "body_template: line 1: engine ran out of fuel",
    },
    {
      body_template: "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
      says: "body_template: line 1: invalid operation: recursion limit exceeded",
    },
    {
      body_template: "{% include '/etc/passwd' %}",
      says: 'body_template: line 1: template not found: tried to include non-existing template "/etc/passwd"',
    },
  ])("that fails is Permanent with its line, and nothing is sent: $body_template", ({ body_template, says }) =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      const error = yield* failureOf({ url: receiver.origin, body_template })
      assert.strictEqual(tagOf(error), "Permanent")
      assert.strictEqual(error.reason, says)
      assert.strictEqual(receiver.requests.length, 0)
    }).pipe(services),
  )

  it.live("sees no prototype and nothing inherited", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      yield* deliverTo({
        url: receiver.origin,
        body_template:
          "[{{ event.constructor }}{{ event.__proto__ }}{{ event['toString'] }}{{ type.length }}{{ event | attr('__proto__') }}]",
      })
      assert.strictEqual(receiver.requests[0]?.body.toString(), "[]")
    }).pipe(services),
  )
})

describe("a webhook's config", () => {
  const url = "https://example.org/hook"

  it.each([
    { config: { url } },
    { config: { url_secret: "env:A", headers: { "x-a": "file:/a", "x-b": "b" }, timeout_ms: 1, signing_secrets: [] } },
  ])("accepts $config", ({ config }) => {
    assert.deepStrictEqual(configProblems(webhook, config), [])
  })

  it.each([
    { config: {}, problems: ["url_secret: missing; give url_secret (a reference) or url"] },
    {
      config: { url, url_secret: "env:A" },
      problems: ["url_secret: url is given as well; keep one of the two"],
    },
    { config: { url: "ftp://example.org" }, problems: ["url: this is no absolute http:// or https:// URL"] },
    { config: { url: "/hook" }, problems: ["url: this is no absolute http:// or https:// URL"] },
    {
      config: {
        url,
        headers: {
          "Idempotency-Key": "1",
          "webhook-ID": "1",
          "blockwatcher-attempt": "1",
          Host: "a",
          "content-length": "1",
          "transfer-encoding": "chunked",
          "a b": "1",
          "x-a": "1\r\nx-b: 2",
          "x-c": "env:A-B",
        },
      },
      problems: [
        "headers.Idempotency-Key: blockwatcher sets this header itself; remove it",
        "headers.webhook-ID: blockwatcher sets this header itself; remove it",
        "headers.blockwatcher-attempt: blockwatcher sets this header itself; remove it",
        "headers.Host: blockwatcher sets this header itself; remove it",
        "headers.content-length: blockwatcher sets this header itself; remove it",
        "headers.transfer-encoding: blockwatcher sets this header itself; remove it",
        "headers.a b: this is no valid header name; use letters, digits and '-'",
        "headers.x-a: the value holds characters that HTTP does not allow, such as a line break",
        "headers.x-c: this is no valid reference; write env:NAME or file:PATH",
      ],
    },
  ])("refuses $config with all its problems", ({ config, problems }) => {
    assert.deepStrictEqual(configProblems(webhook, config), problems)
  })

  it.each([{ timeout_ms: 0 }, { timeout_ms: 1.5 }, { signing_secrets: ["plain"] }, { verify: false }])(
    "refuses $0",
    (rest) => {
      const problems = configProblems(webhook, { url, ...rest })
      assert.strictEqual(problems.length, 1)
      assert.isTrue(problems[0]?.startsWith(Object.keys(rest)[0] ?? "?"), problems[0])
    },
  )

  it.effect(
    "that names secrets which do not resolve is refused with all of them, and a wrong template, and none of their values",
    () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(
          makeSink(webhook, {
            url_secret: "env:URL",
            headers: { "x-a": "env:LINES", "x-b": "env:MISSING" },
            signing_secrets: ["env:NOT_BASE64"],
            body_template: "{{ }",
          }),
        )
        assert.strictEqual(
          error.message,
          "url_secret: env:URL: it holds no absolute http:// or https:// URL; " +
            "headers.x-a: env:LINES: it holds characters that a header may not hold, such as a line break; " +
            "headers.x-b: secret env:MISSING: MISSING is not set, or empty; set it where blockwatcher starts; " +
            "signing_secrets.0: env:NOT_BASE64: it is no Standard Webhooks secret; write whsec_ and base64; " +
            "body_template: line 1: syntax error: unexpected `}`",
        )
        const paths = "problems" in error ? error.problems?.map(({ path }) => path) : []
        assert.deepStrictEqual(paths, [
          "url_secret",
          "headers.x-a",
          "headers.x-b",
          "signing_secrets.0",
          "body_template",
        ])
      }).pipe(Effect.provide(pluginServices({ URL: "hunter2", LINES: "hunter3\nx", NOT_BASE64: "hunter-4" }))),
  )

  it("marks what may hold a key as sensitive", () => {
    assert.deepStrictEqual([...webhook.sensitive].toSorted(), ["headers.*", "url"])
  })
})
