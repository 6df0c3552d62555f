/**
 * Pages of other origins: what a browser asks about first, and which answers it lets a page read.
 */
import { Tool } from "@agenttool/core"
import { McpServer, TokenVerifier } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type Ask, ask, legacyAsk, listen, modernAsk, open, type Options, textOf } from "./support/endpoint.ts"
import { initialize, legacyCall } from "./support/rawMessages.ts"

const app = "https://app.example"
const other = "https://app.other.example:8443"
const foreign = "https://evil.example"

const served = (more: Partial<Options> = {}) => {
  const runs = { count: 0 }
  const work = Tool.make("work", { execute: () => Effect.sync(() => `run ${++runs.count}`) })
  return Effect.map(
    listen({ registrations: McpServer.tools(work), cors: { origins: [app, other] }, ...more }),
    (listening) => ({ runs, ...listening })
  )
}

const preflight = (
  origin: string,
  method = "POST",
  headers = "content-type,mcp-protocol-version,mcp-param-region"
): Ask => ({
  method: "OPTIONS",
  headers: { origin, "access-control-request-method": method, "access-control-request-headers": headers }
})

const listOf = (header: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  String(header ?? "")
    .split(",")
    .map((item) => item.trim().toLowerCase())

const from = (origin: string, request: Ask): Ask => ({ ...request, headers: { ...request.headers, origin } })

describe("CORS", () => {
  it.live("P103: a preflight of a page that is allowed lets it send what the protocol has", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      for (const origin of [app, other]) {
        for (const method of ["POST", "GET", "DELETE"]) {
          const { headers, status, text } = yield* ask(url, preflight(origin, method))
          assert.deepStrictEqual([status, text], [204, ""])
          assert.strictEqual(headers["access-control-allow-origin"], origin)
          assert.include(listOf(headers["access-control-allow-methods"]), method.toLowerCase())
          for (const name of ["content-type", "mcp-protocol-version", "mcp-param-region"]) {
            assert.include(listOf(headers["access-control-allow-headers"]), name)
          }
          assert.include(listOf(headers.vary), "origin")
        }
      }
    })
  )

  it.live("P103: a preflight of any other page is refused", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      for (const origin of [foreign, "null", `${app}.evil.example`, "https://app.example.evil", "http://app.example"]) {
        const { headers } = yield* ask(url, preflight(origin))
        assert.notProperty(headers, "access-control-allow-origin", origin)
      }
    })
  )

  it.live("P103: pages that are allowed read their answers, refusals as well, and the headers they need", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* served()
      const called = yield* ask(url, from(app, modernAsk("work")))
      assert.strictEqual(textOf(called), "run 1")
      const session = yield* open(url, { headers: { origin: app } })
      const inSession = yield* ask(url, from(app, legacyAsk(session, legacyCall(1, "work"))))
      assert.strictEqual(textOf(inSession), "run 2")
      const refused = yield* ask(url, from(app, { body: "{" }))
      assert.strictEqual(refused.status, 400)
      const opened = yield* ask(url, from(app, { message: initialize }))
      for (const { headers } of [called, inSession, refused, opened]) {
        assert.strictEqual(headers["access-control-allow-origin"], app)
        assert.include(listOf(headers["access-control-expose-headers"]), "mcp-session-id")
        assert.include(listOf(headers["access-control-expose-headers"]), "www-authenticate")
        assert.include(listOf(headers.vary), "origin")
        assert.notProperty(headers, "access-control-allow-credentials")
      }
      assert.strictEqual(runs.count, 2)
    })
  )

  it.live("P103: a request of another page is 403, nothing runs, and it cannot read that", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* served()
      const session = yield* open(url)
      const requests: ReadonlyArray<Ask> = [
        modernAsk("work"),
        { message: initialize },
        legacyAsk(session, legacyCall(1, "work")),
        { method: "GET" },
        { method: "DELETE" }
      ]
      for (const request of requests) {
        for (const origin of [foreign, "null", "https://app.example.evil"]) {
          const { headers, status } = yield* ask(url, from(origin, request))
          assert.strictEqual(status, 403)
          assert.notProperty(headers, "access-control-allow-origin")
        }
      }
      assert.strictEqual(runs.count, 0)
    })
  )

  it.live("P103: an empty list of origins allows no page", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ cors: { origins: [] } })
      for (const request of [
        preflight(app),
        from(app, modernAsk("work")),
        from("http://localhost", modernAsk("work"))
      ]) {
        assert.notProperty((yield* ask(url, request)).headers, "access-control-allow-origin")
      }
    })
  )

  it.live("P103: one origin is told to nobody else", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ cors: { origins: [app] } })
      assert.strictEqual((yield* ask(url, preflight(app))).headers["access-control-allow-origin"], app)
      assert.notProperty((yield* ask(url, preflight(foreign))).headers, "access-control-allow-origin")
      assert.notProperty((yield* ask(url, modernAsk("work"))).headers, "access-control-allow-origin")
    })
  )

  it.live("P103: credentials are allowed only where the host says so", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ cors: { origins: [app], credentials: true } })
      for (const request of [preflight(app), from(app, modernAsk("work"))]) {
        const { headers } = yield* ask(url, request)
        assert.strictEqual(headers["access-control-allow-credentials"], "true")
        assert.strictEqual(headers["access-control-allow-origin"], app)
      }
      for (const request of [preflight(foreign), from(foreign, modernAsk("work"))]) {
        assert.notProperty((yield* ask(url, request)).headers, "access-control-allow-origin")
      }
    })
  )

  it.live("P111: a page reads why its token is refused; a preflight, which has none, is answered", () =>
    Effect.gen(function* () {
      const { url } = yield* served({
        around: TokenVerifier.layer({ verify: () => Effect.fail(new TokenVerifier.TokenRejected({ reason: "no" })) })
      })
      assert.strictEqual((yield* ask(url, preflight(app))).status, 204)
      const { headers, status } = yield* ask(url, from(app, modernAsk("work")))
      assert.strictEqual(status, 401)
      assert.strictEqual(headers["access-control-allow-origin"], app)
      assert.include(headers["www-authenticate"], "invalid_token")
      assert.include(listOf(headers["access-control-expose-headers"]), "www-authenticate")
    })
  )

  it.live("P103: without the option no answer is readable for a page", () =>
    Effect.gen(function* () {
      const { url } = yield* listen({
        registrations: McpServer.tools(Tool.make("work", { execute: () => Effect.succeed("done") })),
        around: Layer.empty
      })
      for (const request of [preflight("http://localhost:3000"), from("http://localhost:3000", modernAsk("work"))]) {
        assert.notProperty((yield* ask(url, request)).headers, "access-control-allow-origin")
      }
    })
  )
})

describe("hosts and origins", () => {
  it.live("P103, P104: names beside those of this machine are allowed only by name, without ports", () =>
    Effect.gen(function* () {
      const { log, runs, url } = yield* served({
        allowedHosts: ["tools.example"],
        allowedOrigins: ["console.example"]
      })
      const statusOf = (headers: Record<string, string>) =>
        Effect.map(
          ask(url, { ...modernAsk("work"), headers: { ...modernAsk("work").headers, ...headers } }),
          ({ status }) => status
        )
      for (const good of [
        { host: "tools.example" },
        { host: "tools.example:8080" },
        { host: "[::1]:3000" },
        { origin: "https://console.example" },
        { origin: "http://console.example:3000" },
        { host: "tools.example", origin: app }
      ]) {
        assert.strictEqual(yield* statusOf(good), 200, JSON.stringify(good))
      }
      const served_ = runs.count
      assert.strictEqual(served_, 6)
      for (const bad of [
        { host: "evil.tools.example" },
        { host: "tools.example.evil" },
        { host: "tools.example@evil.example" },
        { host: "evil@tools.example" },
        { host: "evil:secret@tools.example" },
        { host: "not a host" },
        { host: "console.example" },
        { origin: "https://tools.example" },
        { origin: "https://evil.console.example" },
        { origin: "console.example" },
        { origin: "file://" }
      ]) {
        const status = yield* statusOf(bad)
        assert.isTrue(status >= 400 && status < 500, `${status} ${JSON.stringify(bad)}`)
      }
      assert.strictEqual(runs.count, served_)
      assert.notInclude(log(), "ERROR")
    })
  )

  it.live("P100: other methods than POST, and those of sessions, are refused as the client's mistakes", () =>
    Effect.gen(function* () {
      const { log, url } = yield* served()
      for (const method of ["PUT", "PATCH", "HEAD", "TRACE"]) {
        const { status } = yield* ask(url, { method })
        assert.isTrue(status >= 400 && status < 500, `${status} ${method}`)
      }
      assert.notInclude(log(), "ERROR")
    })
  )
})
