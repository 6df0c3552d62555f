/**
 * Who may call over HTTP: bearer tokens, the scopes of the endpoint and of its tools, and what is bound to a principal.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { McpServer, McpSession, TokenVerifier, ToolVisibility } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema, Tracer } from "effect"
import {
  type Answer,
  type Ask,
  ask,
  inSession,
  legacyAsk,
  listen,
  modernAsk,
  modernRequest,
  open,
  type Options,
  responseOf,
  textOf
} from "./support/endpoint.ts"
import { initialize, legacyCall } from "./support/rawMessages.ts"

const resource = new URL("https://tools.example/mcp")
const protection: TokenVerifier.Protection = {
  resource,
  authorizationServers: [new URL("https://login.example/")],
  scopes: ["tools"]
}
const metadataUrl = "https://tools.example/.well-known/oauth-protected-resource/mcp"

const far = 4_102_444_800
const alice: TokenVerifier.Verified = {
  principal: "https://login.example/|alice",
  clientId: "cli",
  scopes: ["tools"],
  expiresAt: far,
  resource
}
const tokens: Readonly<Record<string, TokenVerifier.Verified>> = {
  "secret-alice": alice,
  "secret-alice-refreshed": alice,
  "secret-alice-writes": { ...alice, scopes: ["tools", "disk:write"] },
  "secret-bob": { ...alice, principal: "https://login.example/|bob" },
  "secret-expired": { ...alice, expiresAt: 1_700_000_000 },
  "secret-without-expiry": { ...alice, expiresAt: Number.NaN },
  "secret-of-another": { ...alice, resource: new URL("https://other.example/mcp") },
  "secret-for-nobody": { ...alice, resource: undefined },
  "secret-narrow": { ...alice, scopes: [] }
}

const verifier = TokenVerifier.layer({
  verify: (token) => {
    const text = Redacted.value(token)
    if (text === "secret-down") return Effect.die(new Error("the issuer at 10.0.0.7 is down"))
    const verified = Object.hasOwn(tokens, text) ? tokens[text] : undefined
    return verified === undefined
      ? Effect.fail(new TokenVerifier.TokenRejected({ reason: "no such key in the store" }))
      : Effect.succeed(verified)
  }
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const makeTools = () => {
  const runs = { open: 0, wipe: 0 }
  const openTool = Tool.make("open", {
    execute: () => {
      runs.open++
      return Effect.as(Effect.logInfo("tool at work"), "opened")
    }
  })
  const wipe = Tool.make("wipe", {
    execute: () => Effect.sync(() => `wiped ${++runs.wipe}`)
  }).pipe(TokenVerifier.requireScopes("disk:write"))
  const who = Tool.make("who", {
    execute: () => Effect.map(McpSession.current, ({ principal }) => principal ?? "nobody")
  })
  const confirm = Tool.make("confirm", {
    execute: () => Effect.map(Elicitor.confirm("Sure?"), (sure) => (sure ? "sure" : "not sure"))
  })
  const region = Tool.raw("region", {
    parameters: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    execute: () => Effect.succeed("ok")
  })
  return { runs, registrations: McpServer.tools(openTool, wipe, who, confirm, region) }
}

const protectedServer = (more: Partial<Options> = {}) =>
  Effect.gen(function* () {
    const { registrations, runs } = makeTools()
    return { runs, ...(yield* listen({ registrations, around: verifier, protection, ...more })) }
  })

const challengeOf = ({ headers }: Answer): string => headers["www-authenticate"] ?? ""

/** Nothing of what only the server knows. */
const tellsNothing = ({ headers, text }: Answer) => {
  const all = `${JSON.stringify(headers)} ${text}`
  for (const secret of ["secret-", "10.0.0.7", "no such key", "node_modules", ".ts:", "    at "]) {
    assert.notInclude(all, secret)
  }
}

describe("tokens", () => {
  it.live("P110, P111: a token that is missing, malformed, invalid, expired or for another resource is 401", () =>
    Effect.gen(function* () {
      const { log, runs, url } = yield* protectedServer()
      const session = yield* open(url, { headers: bearer("secret-alice") })
      const requests: ReadonlyArray<Ask> = [
        modernAsk("open"),
        modernRequest("tools/list"),
        legacyAsk(session, legacyCall(1, "open")),
        { message: initialize },
        { method: "GET", headers: inSession(session) },
        { method: "DELETE", headers: inSession(session) },
        { message: { nonsense: true } },
        { body: "{" }
      ]
      const bad = [
        undefined,
        "",
        "Bearer",
        "Bearer ",
        "Basic c2VjcmV0LWFsaWNl",
        "secret-alice",
        "Bearer secret-unknown",
        "Bearer __proto__",
        "Bearer secret-expired",
        "Bearer secret-without-expiry",
        "Bearer secret-of-another",
        "Bearer secret-for-nobody"
      ]
      for (const request of requests) {
        for (const authorization of bad) {
          const answer = yield* ask(url, {
            ...request,
            headers: { ...request.headers, ...(authorization === undefined ? {} : { authorization }) }
          })
          const what = JSON.stringify([request, authorization])
          assert.strictEqual(answer.status, 401, what)
          assert.match(challengeOf(answer), /^Bearer error="invalid_token"/, what)
          assert.include(challengeOf(answer), `resource_metadata="${metadataUrl}"`, what)
          tellsNothing(answer)
        }
      }
      assert.strictEqual(runs.open, 0)
      // It takes none but the header.
      const inQuery = yield* ask(`${url}?access_token=secret-alice&token=secret-alice`, modernAsk("open"))
      assert.strictEqual(inQuery.status, 401)
      // The session that was asked to end is there.
      const good = yield* ask(url, legacyAsk(session, legacyCall(1, "open"), bearer("secret-alice")))
      assert.strictEqual(textOf(good), "opened")
      assert.notInclude(log(), "secret-")
    })
  )

  it.live("P111: with a valid token everything is served, in both eras", () =>
    Effect.gen(function* () {
      const { log, runs, url } = yield* protectedServer()
      const headers = bearer("secret-alice")
      assert.strictEqual(textOf(yield* ask(url, modernAsk("open", { headers }))), "opened")
      const session = yield* open(url, { headers })
      assert.strictEqual(textOf(yield* ask(url, legacyAsk(session, legacyCall(1, "open"), headers))), "opened")
      assert.strictEqual(runs.open, 2)
      assert.notInclude(log(), "secret-")
    })
  )

  it.live("P111: a verifier that fails is answered 500 without its reason, which is in the log", () =>
    Effect.gen(function* () {
      const { log, runs, url } = yield* protectedServer()
      const answer = yield* ask(url, modernAsk("open", { headers: bearer("secret-down") }))
      assert.strictEqual(answer.status, 500)
      tellsNothing(answer)
      assert.include(log(), "the token verifier failed")
      assert.include(log(), "10.0.0.7")
      assert.strictEqual(runs.open, 0)
    })
  )

  it.live("P112: a token with too few scopes for the endpoint is 403, with the scopes that are needed", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* protectedServer()
      const requests: ReadonlyArray<Ask> = [modernAsk("open"), { message: initialize }, { method: "GET" }]
      for (const request of requests) {
        const answer = yield* ask(url, { ...request, headers: { ...request.headers, ...bearer("secret-narrow") } })
        assert.strictEqual(answer.status, 403)
        assert.match(challengeOf(answer), /^Bearer error="insufficient_scope"/)
        assert.include(challengeOf(answer), 'scope="tools"')
        assert.include(challengeOf(answer), `resource_metadata="${metadataUrl}"`)
      }
      assert.strictEqual(runs.open, 0)
    })
  )

  it.live("P109: the metadata of a protected endpoint is at the well-known path, for pages as well", () =>
    Effect.gen(function* () {
      const { url } = yield* protectedServer()
      const wellKnown = new URL("/.well-known/oauth-protected-resource/mcp", url).href
      const { headers, status, text } = yield* ask(wellKnown, { method: "GET" })
      assert.strictEqual(status, 200)
      assert.strictEqual(headers["access-control-allow-origin"], "*")
      assert.deepStrictEqual(JSON.parse(text), {
        resource: "https://tools.example/mcp",
        authorization_servers: ["https://login.example/"],
        bearer_methods_supported: ["header"],
        scopes_supported: ["tools"]
      })
      // The SDK's client asks with a header of the protocol, which a browser asks about first.
      const preflight = yield* ask(wellKnown, {
        method: "OPTIONS",
        headers: {
          origin: "https://app.example",
          "access-control-request-method": "GET",
          "access-control-request-headers": "mcp-protocol-version"
        }
      })
      assert.strictEqual(preflight.status, 204)
      assert.strictEqual(preflight.headers["access-control-allow-origin"], "*")
      assert.include(preflight.headers["access-control-allow-headers"], "mcp-protocol-version")
    })
  )

  it.live("M84: without a verifier there is no token to show, no principal, and no metadata", () =>
    Effect.gen(function* () {
      const { registrations, runs } = makeTools()
      const { url } = yield* listen({ registrations })
      assert.strictEqual(textOf(yield* ask(url, modernAsk("who"))), "nobody")
      assert.strictEqual(textOf(yield* ask(url, modernAsk("wipe", { headers: bearer("whatever") }))), "wiped 1")
      assert.strictEqual(runs.wipe, 1)
      const wellKnown = new URL("/.well-known/oauth-protected-resource/mcp", url).href
      assert.strictEqual((yield* ask(wellKnown, { method: "GET" })).status, 404)
    })
  )
})

describe("scopes of a tool", () => {
  it.live("P112: a call without them is 403 with what is needed, before it starts, in both eras", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* protectedServer()
      const narrow = bearer("secret-alice")
      const session = yield* open(url, { headers: narrow })
      const requests = [
        modernAsk("wipe", { headers: narrow }),
        legacyAsk(session, legacyCall(1, "wipe"), narrow)
      ] as const
      for (const request of requests) {
        const answer = yield* ask(url, request)
        assert.strictEqual(answer.status, 403)
        assert.match(challengeOf(answer), /^Bearer error="insufficient_scope"/)
        assert.include(challengeOf(answer), 'scope="disk:write"')
        assert.include(challengeOf(answer), `resource_metadata="${metadataUrl}"`)
        const wide = yield* ask(url, { ...request, headers: { ...request.headers, ...bearer("secret-alice-writes") } })
        assert.include(textOf(wide), "wiped")
      }
      assert.strictEqual(runs.wipe, 2)
      // Other tools need none of it.
      assert.strictEqual(textOf(yield* ask(url, modernAsk("open", { headers: narrow }))), "opened")
    })
  )

  it.live("P112, P129: nor does a call in a batch come through without them", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* protectedServer()
      const narrow = bearer("secret-alice")
      const session = yield* open(url, { headers: narrow, version: "2025-03-26" })
      const batch = [legacyCall(1, "open"), legacyCall(2, "wipe")].map((message) => ({ jsonrpc: "2.0", ...message }))
      const headers = inSession(session, "2025-03-26")
      const refused = yield* ask(url, { body: JSON.stringify(batch), headers: { ...headers, ...narrow } })
      assert.strictEqual(refused.status, 403)
      assert.include(challengeOf(refused), 'scope="disk:write"')
      assert.deepStrictEqual(runs, { open: 0, wipe: 0 })
      const served = yield* ask(url, {
        body: JSON.stringify(batch),
        headers: { ...headers, ...bearer("secret-alice-writes") }
      })
      assert.strictEqual(served.status, 200)
      assert.deepStrictEqual(runs, { open: 1, wipe: 1 })
    })
  )

  it.live("P112: the challenge of a tool that the client does not see is not given: it is an unknown tool", () =>
    Effect.gen(function* () {
      const hides = ToolVisibility.layer({
        isVisible: (tool, session) =>
          Effect.succeed(tool.name === "open" || session.principal?.endsWith("bob") === true)
      })
      const { url } = yield* protectedServer({ around: Layer.merge(verifier, hides) })
      const unknown = (answer: Answer) => JSON.stringify([answer.status, challengeOf(answer), responseOf(answer).error])
      const [to, bob] = [bearer("secret-alice"), bearer("secret-bob")]
      const session = yield* open(url, { headers: to })
      for (const name of ["wipe", "region"]) {
        const params = { arguments: { region: "eu" } }
        const hidden = yield* ask(url, modernAsk(name, { headers: to, params }))
        const other = yield* ask(url, modernAsk("no_such_tool", { headers: to, params }))
        assert.strictEqual(unknown(hidden), unknown(other).replaceAll("no_such_tool", name))
        assert.strictEqual(hidden.status, 200)
        // Who sees it hears what is missing.
        const seen = yield* ask(url, modernAsk(name, { headers: bob, params }))
        assert.strictEqual(seen.status, name === "wipe" ? 403 : 400)
      }
      const hidden = yield* ask(url, legacyAsk(session, legacyCall(1, "wipe"), to))
      const other = yield* ask(url, legacyAsk(session, legacyCall(1, "no_such_tool"), to))
      assert.strictEqual(unknown(hidden), unknown(other).replaceAll("no_such_tool", "wipe"))
    })
  )
})

describe("the principal", () => {
  it.live("P113: reaches the session, the tool's log lines and its span, in both eras", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.Span> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const { log, url } = yield* protectedServer({
        around: Layer.merge(verifier, Layer.succeed(Tracer.Tracer, tracer))
      })
      const headers = bearer("secret-alice")
      const session = yield* open(url, { headers })
      assert.strictEqual(textOf(yield* ask(url, modernAsk("who", { headers }))), alice.principal)
      assert.strictEqual(textOf(yield* ask(url, legacyAsk(session, legacyCall(1, "who"), headers))), alice.principal)
      assert.strictEqual(
        textOf(yield* ask(url, modernAsk("who", { headers: bearer("secret-bob") }))),
        "https://login.example/|bob"
      )
      yield* ask(url, modernAsk("open", { headers }))
      const line = log()
        .split("\n")
        .find((logged) => logged.includes("tool at work"))
      assert.include(line, `principal=${alice.principal}`)
      const principals = spans
        .filter(({ name }) => name === "tools/call who")
        .map(({ attributes }) => attributes.get("enduser.id"))
      assert.deepStrictEqual(principals, [alice.principal, alice.principal, "https://login.example/|bob"])
    })
  )

  it.live("P49, M64: answers of another principal are -32602, and spend nothing; a refreshed token is the same", () =>
    Effect.gen(function* () {
      const { count, url } = yield* protectedServer()
      const asked = responseOf(yield* ask(url, modernAsk("confirm", { headers: bearer("secret-alice") })))
      const requestState = asked.result?.requestState
      assert.isString(requestState)
      const reply = (token: string) =>
        ask(
          url,
          modernAsk("confirm", {
            id: token,
            headers: bearer(token),
            params: {
              requestState,
              inputResponses: { elicit_1: { action: "accept", content: { confirm: true } } }
            }
          })
        )
      const foreign = responseOf(yield* reply("secret-bob"))
      assert.strictEqual(foreign.error?.code, -32602)
      assert.notInclude(JSON.stringify(foreign), "alice")
      assert.strictEqual((yield* count).parked, 1)
      assert.strictEqual(textOf(yield* reply("secret-alice-refreshed")), "sure")
    })
  )

  it.live("P122: a session is 404 for another principal than the one that opened it, and goes on", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* protectedServer()
      const session = yield* open(url, { headers: bearer("secret-alice") })
      const headers = { ...inSession(session), ...bearer("secret-bob") }
      const foreign: ReadonlyArray<Ask> = [
        { message: legacyCall(1, "open"), headers },
        { method: "GET", headers },
        { method: "DELETE", headers }
      ]
      for (const request of foreign) assert.strictEqual((yield* ask(url, request)).status, 404)
      assert.strictEqual(runs.open, 0)
      const own = yield* ask(url, legacyAsk(session, legacyCall(1, "open"), bearer("secret-alice-refreshed")))
      assert.strictEqual(textOf(own), "opened")
    })
  )
})

describe("the well-known path", () => {
  it.prop(
    "P109: is the path of the endpoint behind the well-known prefix",
    { path: Schema.String.check(Schema.isPattern(/^\/[a-z]{1,8}(\/[a-z]{1,8})?$/u)) },
    ({ path }) => {
      assert.strictEqual(TokenVerifier.metadataPath(path), `/.well-known/oauth-protected-resource${path}`)
    }
  )

  it("P109: of an endpoint at the root is the prefix alone", () => {
    assert.strictEqual(TokenVerifier.metadataPath("/"), "/.well-known/oauth-protected-resource")
  })
})
