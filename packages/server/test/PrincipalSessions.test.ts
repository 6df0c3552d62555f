/**
 * Sessions of requests that have none of their own: by principal, where that is set, and what ends them; and how the
 * sessions of 2025 clients end by themselves. On the test's clock, so without sockets: requests go to the endpoint as it is.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { McpServer, McpSession, type Settings, TokenVerifier, ToolVisibility } from "@agenttool/server"
import * as Core from "@agenttool/server/Core"
import * as Http from "@agenttool/server/Http"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { Message } from "./support/Link.ts"
import { capturingLog, inSession, modernHeaders } from "./support/endpoint.ts"
import { envelope, initialize, initialized, legacyCall, modernCall } from "./support/rawMessages.ts"

const verifier = TokenVerifier.layer({
  verify: (token) =>
    Effect.succeed({ principal: Redacted.value(token), clientId: "cli", scopes: [], expiresAt: 4_102_444_800 })
})

class Workspace extends Context.Service<Workspace, { readonly id: number; used: number }>()("test/Workspace") {}
class Endpoint extends Context.Service<Endpoint, Http.Endpoint>()("test/Endpoint") {}

const served = (settings: Partial<Settings.Settings> = {}, around: Layer.Layer<never> = Layer.empty) =>
  Effect.gen(function* () {
    const lived = { built: 0, released: 0 }
    const gate = yield* Deferred.make<void>()
    const workspace = Layer.effect(
      Workspace,
      Effect.acquireRelease(
        Effect.sync(() => ({ id: ++lived.built, used: 0 })),
        () => Effect.sync(() => void lived.released++)
      )
    )
    const use = Effect.map(Effect.service(Workspace), (found) => `${found.id} used ${++found.used}`)
    const tools = McpServer.tools(
      Tool.make("use", { execute: () => use }).pipe(McpSession.provide(workspace)),
      Tool.make("again", { execute: () => use }).pipe(McpSession.provide(workspace)),
      Tool.make("ask", {
        execute: () => Effect.andThen(use, Effect.andThen(Elicitor.confirm("Sure?"), use))
      }).pipe(McpSession.provide(workspace)),
      Tool.make("wait", { execute: () => Effect.andThen(use, Effect.andThen(Deferred.await(gate), use)) }).pipe(
        McpSession.provide(workspace)
      ),
      Tool.make("session", {
        execute: () =>
          Effect.map(McpSession.current, (session) =>
            JSON.stringify([
              session.id,
              session.lifetime,
              session.principal ?? null,
              session.client().info?.name ?? null
            ])
          )
      })
    )
    const { layer } = capturingLog()
    const context = yield* Layer.effect(Endpoint, Http.endpoint({ name: "suite", version: "1.0.0" })).pipe(
      Layer.provide(tools),
      Layer.provide(Core.layer),
      Layer.provide(Core.settings({ shutdownGrace: 0, ...settings })),
      Layer.provide(Layer.merge(verifier, around)),
      Layer.provide(layer),
      Layer.fresh,
      Layer.build
    )
    const { respond } = Context.get(context, Endpoint)
    const here = yield* Effect.context<never>()

    /** One request; interrupting it drops it. */
    const send = (
      method: string,
      headers: Readonly<Record<string, string>>,
      message?: Readonly<Record<string, unknown>>
    ): Effect.Effect<Response> =>
      Effect.promise((signal) =>
        respond(
          new Request("http://localhost/mcp", {
            method,
            signal,
            headers: {
              host: "localhost",
              accept: "application/json, text/event-stream",
              "content-type": "application/json",
              ...headers
            },
            ...(message === undefined ? {} : { body: JSON.stringify({ jsonrpc: "2.0", ...message }) })
          }),
          here
        )
      )

    const read = (response: Response): Effect.Effect<Message> =>
      Effect.map(
        Effect.promise(() => response.text()),
        (text) => {
          const line = text
            .split("\n")
            .filter((each) => each.startsWith("data: {"))
            .at(-1)
          return JSON.parse(line === undefined ? text : line.slice(6)) as Message
        }
      )

    const textOf = (message: Message) => message.result?.content?.[0]?.text ?? JSON.stringify(message)

    const modern = (principal: string, name: string, more: Readonly<Record<string, unknown>> = {}, id: number = 1) =>
      Effect.flatMap(
        send("POST", { ...modernHeaders(name), authorization: `Bearer ${principal}` }, modernCall(id, name, more)),
        read
      )
    const call = (principal: string, name: string) => Effect.map(modern(principal, name), textOf)

    /** The same in a session of a 2025 client. */
    const legacy = (principal: string) => {
      const authorization = { authorization: `Bearer ${principal}` }
      return Effect.gen(function* () {
        const opened = yield* send("POST", authorization, initialize)
        const id = opened.headers.get("mcp-session-id") ?? ""
        yield* Effect.promise(() => opened.text())
        const headers = { ...authorization, ...inSession(id) }
        yield* send("POST", headers, initialized)
        return {
          headers,
          post: (message: Readonly<Record<string, unknown>>) => send("POST", headers, message),
          call: (name: string, callId: number = 1) =>
            Effect.map(Effect.flatMap(send("POST", headers, legacyCall(callId, name)), read), textOf)
        }
      })
    }
    return {
      lived,
      openGate: Effect.asVoid(Deferred.succeed(gate, undefined)),
      send,
      read,
      modern,
      call,
      legacy,
      textOf
    }
  })

/** Lets whatever was woken run, promises included. */
const settle = Effect.promise(() => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve))))

const perPrincipal = { sessionPerPrincipal: true, sessionIdleTimeout: "10 minutes" } as const

describe("one session per principal", () => {
  it.effect("M45: is shared by all requests of the principal and all tools, and released when it was idle", () =>
    Effect.gen(function* () {
      const { call, lived } = yield* served(perPrincipal)
      assert.deepStrictEqual(
        [
          yield* call("alice", "use"),
          yield* call("alice", "again"),
          yield* call("bob", "use"),
          yield* call("alice", "use")
        ],
        ["1 used 1", "1 used 2", "2 used 1", "1 used 3"]
      )
      yield* settle
      yield* TestClock.adjust("9 minutes")
      assert.strictEqual(yield* call("alice", "use"), "1 used 4")
      yield* settle
      yield* TestClock.adjust("9 minutes")
      // Bob's was idle for longer.
      assert.deepStrictEqual(lived, { built: 2, released: 1 })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(lived, { built: 2, released: 2 })
      assert.strictEqual(yield* call("alice", "use"), "3 used 1")
    })
  )

  it.effect("M45: is not idle while a call of it runs or waits for its answer, however long that takes", () =>
    Effect.gen(function* () {
      const { call, lived, modern, openGate, textOf } = yield* served({ ...perPrincipal, abandonAfter: "5 hours" })
      const waiting = yield* Effect.forkChild(call("alice", "wait"), { startImmediately: true })
      const asked = yield* modern("bob", "ask")
      const requestState = asked.result?.requestState
      assert.isString(requestState)
      yield* settle
      yield* TestClock.adjust("2 hours")
      assert.deepStrictEqual(lived, { built: 2, released: 0 })
      yield* openGate
      assert.match(yield* Fiber.join(waiting), /used 2$/)
      const answered = yield* modern(
        "bob",
        "ask",
        { requestState, inputResponses: { elicit_1: { action: "accept", content: { confirm: true } } } },
        2
      )
      assert.match(textOf(answered), /used 2$/)
      yield* settle
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(lived, { built: 2, released: 2 })
    })
  )

  it.effect("M45: is given back by requests that start nothing: listings, claims, unknown tools, refused answers", () =>
    Effect.gen(function* () {
      const { call, lived, modern, send } = yield* served({ ...perPrincipal, maxRunningPerSession: 1, maxQueued: 0 })
      assert.strictEqual(yield* call("alice", "use"), "1 used 1")
      for (const method of ["tools/list", "execution/facts"]) {
        const params = { calls: [{ name: "use" }], _meta: envelope }
        yield* send(
          "POST",
          { "mcp-protocol-version": "2026-07-28", "mcp-method": method, authorization: "Bearer alice" },
          { id: 1, method, params }
        )
      }
      yield* call("alice", "no_such_tool")
      yield* modern("alice", "ask", { requestState: "0".repeat(64), inputResponses: {} })
      yield* modern("alice", "use", { arguments: "none" })
      yield* settle
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(lived, { built: 1, released: 1 })
    })
  )

  it.effect("M45, P64: is given back by requests that are dropped, wherever they are", () =>
    Effect.gen(function* () {
      let slow = false
      const { call, lived } = yield* served(
        { ...perPrincipal, maxRunningPerSession: 1 },
        ToolVisibility.layer({ isVisible: () => Effect.suspend(() => (slow ? Effect.never : Effect.succeed(true))) })
      )
      assert.strictEqual(yield* call("alice", "use"), "1 used 1")
      // While it runs, while one waits in the queue behind it, and while visibility is asked.
      const running = yield* Effect.forkChild(call("alice", "wait"), { startImmediately: true })
      yield* settle
      const queued = yield* Effect.forkChild(call("alice", "use"), { startImmediately: true })
      yield* settle
      slow = true
      const looking = yield* Effect.forkChild(call("alice", "use"), { startImmediately: true })
      yield* settle
      for (const fiber of [looking, queued, running]) yield* Fiber.interrupt(fiber)
      yield* settle
      yield* settle
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(lived, { built: 1, released: 1 })
    })
  )

  it.effect("M45: is only for those whom the transport has authenticated, and not for 2025 sessions", () =>
    Effect.gen(function* () {
      const { call, legacy, lived } = yield* served(perPrincipal)
      assert.strictEqual(yield* call("alice", "session"), JSON.stringify(["", "principal", "alice", "test"]))
      const session = yield* legacy("alice")
      assert.match(yield* session.call("session"), /^\["[0-9a-f-]{36}","connection","alice","test"\]$/)
      assert.strictEqual(yield* call("alice", "use"), "1 used 1")
      assert.strictEqual(yield* session.call("use", 2), "2 used 1")
      assert.deepStrictEqual(lived, { built: 2, released: 0 })
    })
  )

  it.effect("M45: without the setting every request has a session of its own, that ends with what it started", () =>
    Effect.gen(function* () {
      const { call, lived, modern } = yield* served()
      assert.strictEqual(yield* call("alice", "session"), JSON.stringify(["", "request", "alice", "test"]))
      assert.strictEqual(yield* call("alice", "use"), "1 used 1")
      assert.strictEqual(yield* call("alice", "use"), "2 used 1")
      yield* settle
      assert.deepStrictEqual(lived, { built: 2, released: 2 })
      const asked = yield* modern("alice", "ask")
      yield* settle
      assert.deepStrictEqual(lived, { built: 3, released: 2 })
      yield* modern(
        "alice",
        "ask",
        { requestState: asked.result?.requestState, inputResponses: { elicit_1: { action: "cancel" } } },
        2
      )
      yield* settle
      assert.deepStrictEqual(lived, { built: 3, released: 3 })
    })
  )
})

describe("the session of a 2025 client", () => {
  it.effect("M45: ends when it was idle, and what lives in it is released", () =>
    Effect.gen(function* () {
      const { legacy, lived } = yield* served({ sessionIdleTimeout: "30 minutes" })
      const [idle, busy] = [yield* legacy("alice"), yield* legacy("alice")]
      assert.strictEqual(yield* idle.call("use"), "1 used 1")
      assert.strictEqual(yield* busy.call("use"), "2 used 1")
      yield* TestClock.adjust("20 minutes")
      assert.strictEqual(yield* busy.call("use", 2), "2 used 2")
      yield* TestClock.adjust("20 minutes")
      yield* settle
      assert.deepStrictEqual(lived, { built: 2, released: 1 })
      assert.strictEqual((yield* idle.post(legacyCall(3, "use"))).status, 404)
      assert.strictEqual(yield* busy.call("use", 3), "2 used 3")
    })
  )

  it.effect("M45: never while a call runs in it, nor while a question is open", () =>
    Effect.gen(function* () {
      const { legacy, lived, openGate, read, textOf } = yield* served({
        sessionIdleTimeout: "30 minutes",
        abandonAfter: "5 hours"
      })
      const [running, asking] = [yield* legacy("alice"), yield* legacy("alice")]
      const waiting = yield* running.post(legacyCall(1, "wait"))
      const question = yield* asking.post(legacyCall(1, "ask"))
      yield* settle
      yield* TestClock.adjust("4 hours")
      yield* settle
      assert.deepStrictEqual(lived, { built: 2, released: 0 })
      yield* openGate
      assert.match(textOf(yield* read(waiting)), /used 2$/)
      const reader = question.body?.getReader()
      let seen = ""
      while (!seen.includes("elicitation/create")) {
        const chunk = yield* Effect.promise(() => reader?.read() ?? Promise.reject(new Error("no body")))
        seen += new TextDecoder().decode(chunk.value)
      }
      const asked = /data: (\{.*"elicitation\/create".*\})/.exec(seen)?.[1] ?? "{}"
      const { id } = JSON.parse(asked) as Message
      yield* asking.post({ id, result: { action: "cancel" } })
      yield* settle
      assert.strictEqual(yield* asking.call("use", 2), `2 used 3`)
      // Its looking around is not done in the moment in which it is due.
      for (const time of ["29 minutes", "1 minute", "1 minute", "1 minute"] as const) {
        yield* TestClock.adjust(time)
        yield* settle
      }
      assert.deepStrictEqual(lived, { built: 2, released: 2 })
    })
  )
})
