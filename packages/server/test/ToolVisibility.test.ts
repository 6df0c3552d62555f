/**
 * Tools that a host hides from some of its clients: by principal over HTTP, in both eras, in listings, calls and facts.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { ClientRequests, McpServer, TokenVerifier, ToolVisibility } from "@agenttool/server"
import { connect } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Redacted, Schema } from "effect"
import {
  type Answer,
  ask,
  legacyAsk,
  listen,
  modernAsk,
  modernRequest,
  open,
  type Options,
  responseOf,
  textOf,
  until
} from "./support/endpoint.ts"
import { legacyCall } from "./support/rawMessages.ts"

const verifier = TokenVerifier.layer({
  verify: (token) =>
    Effect.succeed({ principal: Redacted.value(token), clientId: "cli", scopes: [], expiresAt: 4_102_444_800 })
})

const bearer = (principal: string) => ({ authorization: `Bearer ${principal}` })

/** Tools whose name begins with `admin_` are root's. */
const admins = ToolVisibility.layer({
  isVisible: (tool, session) => Effect.succeed(!tool.name.startsWith("admin_") || session.principal === "root")
})

const makeTools = () => {
  const ran: Array<string> = []
  const running = (name: string) =>
    Effect.sync(() => {
      ran.push(name)
      return name
    })
  const claims = Tool.facts(() => {
    ran.push("facts")
    return Effect.succeed({ calls: [] })
  })
  const tools = [
    Tool.make("look", { execute: () => running("look") }).pipe(claims),
    Tool.make("admin_wipe", { execute: () => running("admin_wipe") }).pipe(claims),
    Tool.make("admin_roots", { execute: () => running("admin_roots") }).pipe(ClientRequests.require({ roots: {} })),
    Tool.make("admin_asks", {
      execute: () => Effect.andThen(running("admin_asks"), Effect.map(Elicitor.confirm("Sure?"), String))
    }),
    Tool.make("admin_strict", {
      parameters: Schema.Struct({ n: Schema.Int }),
      execute: () => running("admin_strict")
    })
  ] as const
  return { ran, tools, registrations: McpServer.tools(...tools) }
}

const served = (more: Partial<Options> = {}) =>
  Effect.gen(function* () {
    const { ran, registrations } = makeTools()
    return { ran, ...(yield* listen({ registrations, around: Layer.merge(verifier, admins), ...more })) }
  })

const namesIn = (answer: Answer): ReadonlyArray<string> =>
  ((responseOf(answer).result?.tools ?? []) as ReadonlyArray<{ name: string }>).map(({ name }) => name)

/** All that an answer says, without the name that was asked for and what names the request or its session. */
const words = ({ headers, status, text }: Answer, name: string): string => {
  const { date, "mcp-session-id": _, ...rest } = headers
  return JSON.stringify([status, rest, text.replaceAll(name, "NAME").replace(/^id: .*$/m, "id")])
}

describe("a tool that a client does not see", () => {
  it.live("P70: is not listed for it, by the principal of the request and nothing else, in both eras", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const all = ["look", "admin_wipe", "admin_roots", "admin_asks", "admin_strict"]
      for (const [principal, names] of [
        ["root", all],
        ["guest", ["look"]],
        ["root", all]
      ] as const) {
        const headers = bearer(principal)
        assert.deepStrictEqual(namesIn(yield* ask(url, modernRequest("tools/list", { headers }))), names)
        const session = yield* open(url, { headers })
        const list = { id: 1, method: "tools/list", params: {} }
        assert.deepStrictEqual(namesIn(yield* ask(url, legacyAsk(session, list, headers))), names)
      }
    })
  )

  it.live("M25: is, where it is called, a tool that is not there, whatever else is wrong with the call", () =>
    Effect.gen(function* () {
      const { ran, url } = yield* served()
      const headers = bearer("guest")
      const session = yield* open(url, { headers })
      for (const name of ["admin_wipe", "admin_roots", "admin_asks", "admin_strict"]) {
        for (const params of [{}, { arguments: { n: "x" } }, { requestState: "0".repeat(64), inputResponses: {} }]) {
          const hidden = yield* ask(url, modernAsk(name, { headers, params }))
          const unknown = yield* ask(url, modernAsk("no_such_tool", { headers, params }))
          assert.strictEqual(words(hidden, name), words(unknown, "no_such_tool"))
          assert.strictEqual(responseOf(hidden).error?.code, -32602)
          const inSession = (called: string) =>
            ask(url, legacyAsk(session, { ...legacyCall(1, called), params: { name: called, ...params } }, headers))
          assert.strictEqual(
            words(yield* inSession(name), name),
            words(yield* inSession("no_such_tool"), "no_such_tool")
          )
        }
      }
      assert.deepStrictEqual(ran, [])
      assert.strictEqual(textOf(yield* ask(url, modernAsk("admin_wipe", { headers: bearer("root") }))), "admin_wipe")
      const lacking = yield* ask(url, modernAsk("admin_roots", { headers: bearer("root") }))
      assert.deepStrictEqual([lacking.status, responseOf(lacking).error?.code], [400, -32021])
    })
  )

  it.live("M76: is unknown to the method that answers claims, and its claim is not asked", () =>
    Effect.gen(function* () {
      const { ran, url } = yield* served()
      const calls = [{ name: "admin_wipe" }, { name: "look" }]
      const facts = (principal: string) =>
        Effect.map(
          ask(url, modernRequest("execution/facts", { params: { calls }, headers: bearer(principal) })),
          (answer) => responseOf(answer).result?.results
        )
      const claimed = { facts: { calls: [] }, replay: "unknown" }
      assert.deepStrictEqual(yield* facts("guest"), [
        { error: 'unknown tool "admin_wipe"', replay: "unknown" },
        claimed
      ])
      assert.deepStrictEqual(ran, ["facts"])
      assert.deepStrictEqual(yield* facts("root"), [claimed, claimed])
    })
  )

  it.live("M64: is not gone on with either: its state is that of an unknown tool, and is not spent", () =>
    Effect.gen(function* () {
      let hidden = false
      const { count, url } = yield* served({
        around: Layer.merge(verifier, ToolVisibility.layer({ isVisible: () => Effect.sync(() => !hidden) }))
      })
      const headers = bearer("root")
      const requestState = responseOf(yield* ask(url, modernAsk("admin_asks", { headers }))).result?.requestState
      const params = {
        requestState,
        inputResponses: { elicit_1: { action: "accept", content: { confirm: true } } }
      }
      hidden = true
      const refused = yield* ask(url, modernAsk("admin_asks", { id: 2, headers, params }))
      assert.deepStrictEqual(responseOf(refused).error, { code: -32602, message: 'unknown tool "admin_asks"' })
      assert.strictEqual((yield* count).parked, 1)
      hidden = false
      assert.strictEqual(textOf(yield* ask(url, modernAsk("admin_asks", { id: 3, headers, params }))), "true")
    })
  )

  for (const protocolVersion of ["2026-07-28", "2025-11-25"] as const) {
    it.live("M25, P70: in memory and on stdio it is the session that decides", () =>
      Effect.gen(function* () {
        const { ran, tools } = makeTools()
        const mcp = yield* connect({ tools, protocolVersion })
        const listed = yield* Effect.promise(() => mcp.client.listTools())
        assert.deepStrictEqual(
          listed.tools.map(({ name }) => name),
          ["look"]
        )
        const refused = yield* Effect.promise(() =>
          mcp.client.callTool({ name: "admin_wipe" }).then(String, (error: unknown) => String(error))
        )
        assert.include(refused, 'unknown tool "admin_wipe"')
        assert.deepStrictEqual(ran, [])
      }).pipe(Effect.scoped, Effect.provide(admins))
    )
  }

  it.live("P69: makes a listing private, whatever the settings say of it", () =>
    Effect.gen(function* () {
      const { registrations } = makeTools()
      const scopeOf = (more: Partial<Options>) =>
        Effect.gen(function* () {
          const { url } = yield* listen({ registrations, listScope: "public", listTtl: "1 minute", ...more })
          const { result } = responseOf(yield* ask(url, modernRequest("tools/list", { headers: bearer("guest") })))
          return [result?.cacheScope, result?.ttlMs]
        })
      assert.deepStrictEqual(yield* scopeOf({}), ["public", 60_000])
      assert.deepStrictEqual(yield* scopeOf({ around: Layer.merge(verifier, admins) }), ["private", 60_000])
    })
  )
})

describe("a decision that takes its time", () => {
  it.live("P64: ends with its request, and leaves nothing", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      let interrupted = 0
      const slow = ToolVisibility.layer({
        isVisible: () =>
          Effect.onInterrupt(Effect.andThen(Deferred.succeed(asked, undefined), Effect.never), () =>
            Effect.sync(() => {
              interrupted++
            })
          )
      })
      const { count, ran, url } = yield* served({ around: slow })
      yield* Effect.raceFirst(ask(url, modernAsk("look")), Deferred.await(asked))
      yield* until(
        Effect.sync(() => interrupted),
        (times) => times === 1
      )
      assert.deepStrictEqual(ran, [])
      assert.deepStrictEqual(yield* count, { attached: 0, parked: 0, fibers: 0 })
    })
  )

  it.live("M27: or fails is an internal error with a reference into the log, and says nothing of itself", () =>
    Effect.gen(function* () {
      const broken = ToolVisibility.layer({ isVisible: () => Effect.die(new Error("no directory at 10.0.0.7")) })
      const { log, ran, url } = yield* served({ around: broken })
      for (const request of [modernAsk("look"), modernRequest("tools/list")]) {
        const answer = yield* ask(url, request)
        assert.match(responseOf(answer).error?.message ?? "", /^internal error \([0-9a-f]{8}\)$/)
        assert.notInclude(answer.text, "10.0.0.7")
      }
      assert.include(log(), "no directory at 10.0.0.7")
      assert.deepStrictEqual(ran, [])
    })
  )
})
