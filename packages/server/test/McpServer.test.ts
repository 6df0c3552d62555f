/**
 * Registering, listing, notifying, reporting: with a client in memory.
 */
import { Elicitor, Progress, Tool, Toolbox, type ToolResult } from "@agenttool/core"
import { McpServer, type Settings } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Server } from "@modelcontextprotocol/server"
import { Context, Effect, Exit, Layer, Logger, Result, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { textOf } from "./support/Link.ts"

const ping = Tool.make("ping", { description: "answers", execute: () => Effect.succeed("pong") })
const saying = (name: string, words: string) =>
  Tool.make(name, { description: words, execute: () => Effect.succeed(words) })

/** What went over the wire, the server's messages alone. */
interface Wire {
  readonly method?: string
  readonly params?: { readonly progress?: number; readonly message?: string; readonly total?: number }
}

const connected = <E>(
  registrations: Layer.Layer<never, E, McpServer.Core>,
  options: Partial<Settings.Settings> & { readonly protocolVersion?: "2026-07-28" | "2025-11-25" } = {}
) =>
  Effect.gen(function* () {
    const seen: Array<Wire> = []
    const warnings: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      if (logLevel === "Warn") warnings.push(String(message))
    })
    const context = yield* McpServer.layerTest({
      ...options,
      registrations,
      record: ({ from, message }) => {
        if (from === "server") seen.push(message as Wire)
      }
    }).pipe(Layer.provide(Logger.layer([logger])), Layer.build)
    const client = Context.get(context, McpServer.TestClient)
    const list = Effect.map(
      Effect.promise(() => client.listTools(undefined, { cacheMode: "refresh" })),
      ({ tools }) => tools
    )
    const call = (name: string, args: Record<string, unknown> = {}) =>
      Effect.promise(() => client.callTool({ name, arguments: args }))
    const of = (method: string) => seen.filter((message) => message.method === method)
    return { client, seen, warnings, list, call, of }
  })

const eras = ["2026-07-28", "2025-11-25"] as const

describe("registering", () => {
  it.effect("M1: two registrations merge, and the server has the name and version it was given", () =>
    Effect.gen(function* () {
      const both = Layer.mergeAll(McpServer.tools(ping), McpServer.tools(saying("other", "hi")))
      const { client, list } = yield* connected(both)
      assert.deepStrictEqual((yield* list).map(({ name }) => name).sort(), ["other", "ping"])
      assert.strictEqual(client.getServerVersion()?.name, "test")
    })
  )

  it.effect("M2, M3: a schema that cannot be served fails the layer, and nothing of its registration is there", () =>
    Effect.gen(function* () {
      const wrong = (parameters: Schema.JsonObject) =>
        Tool.raw("bad", { parameters, execute: () => Effect.succeed("") })
      for (const parameters of [
        { type: 5 },
        { type: "object", properties: { a: { $ref: "#/nowhere" } } },
        { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { a: { pattern: "(" } } },
        { type: "string" },
        { anyOf: [{ type: "object" }] },
        {},
        { $schema: "http://example.com/unknown", type: "array" }
      ] as ReadonlyArray<Schema.JsonObject>) {
        const error = yield* Effect.flip(connected(McpServer.tools(ping, wrong(parameters))))
        assert.strictEqual(error._tag, "RegistrationError")
        assert.match(error.message, /^mcpserver: tool "bad": schema: ./)
      }
      // Beside one that is served already.
      const { list } = yield* connected(
        Layer.mergeAll(
          McpServer.tools(ping),
          McpServer.tools(saying("with", "it"), wrong({ type: 5 })).pipe(Layer.catchCause(() => Layer.empty))
        )
      )
      assert.deepStrictEqual(
        (yield* list).map(({ name }) => name),
        ["ping"]
      )
    })
  )

  it.effect("M5: a dialect that is not known is one warning; its tool is listed as it is, and gets what was sent", () =>
    Effect.gen(function* () {
      const parameters = { $schema: "http://example.com/unknown", type: "object", required: ["a"] } as const
      const odd = Tool.raw("odd", { parameters, execute: (call) => Effect.succeed(call.arguments) })
      const { call, list, warnings } = yield* connected(McpServer.tools(odd))
      assert.lengthOf(warnings, 1)
      assert.include(warnings[0], '"odd"')
      assert.include(warnings[0], "http://example.com/unknown")
      assert.deepStrictEqual<unknown>((yield* list)[0]?.inputSchema, parameters)
      assert.strictEqual(textOf(yield* call("odd", { b: 1 })), '{"b":1}')
    })
  )

  it.effect("S-14, M6, M7: of two tools with one name the later counts everywhere, in the place of the first", () =>
    Effect.gen(function* () {
      const [first, second] = [saying("twin", "first"), saying("twin", "second").pipe(Tool.replay("safe"))]
      const check = Toolbox.check([first, second])
      assert.strictEqual(Result.isFailure(check) ? check.failure.message : "", 'tool "twin": duplicate name')
      for (const registrations of [
        McpServer.tools(first, ping, second),
        McpServer.tools(second).pipe(Layer.provideMerge(McpServer.tools(first, ping)))
      ]) {
        const { call, client, list, warnings } = yield* connected(registrations)
        assert.deepStrictEqual(
          (yield* list).map(({ description, name }) => [name, description]),
          [
            ["twin", "second"],
            ["ping", "answers"]
          ]
        )
        assert.strictEqual(textOf(yield* call("twin")), "second")
        const { results } = yield* Effect.promise(() =>
          client.request(
            { method: "execution/facts", params: { calls: [{ name: "twin" }] } },
            Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Unknown) }))
          )
        )
        assert.deepStrictEqual(results, [{ replay: "safe" }])
        assert.lengthOf(warnings, 1)
        assert.include(warnings[0], '"twin"')
      }
    })
  )

  it.effect("M6: when the later registration is released, the earlier tool is back", () =>
    Effect.gen(function* () {
      const { call, scope } = yield* growing(saying("twin", "first"))
      yield* McpServer.tools(saying("twin", "second")).pipe(
        Layer.buildWithScope(scope.scope),
        Effect.provideContext(scope.core)
      )
      assert.strictEqual(textOf(yield* call("twin")), "second")
      yield* Scope.close(scope.scope, Exit.void)
      assert.strictEqual(textOf(yield* call("twin")), "first")
    })
  )

  it.effect("S-13: names outside of what models take are one warning each, and the empty name is refused", () =>
    Effect.gen(function* () {
      const odd = ["my tool", "a.b", "x".repeat(65)]
      const tools = [...odd, "ok_name-1"].map((name) => Tool.raw(name, { execute: () => Effect.succeed(name) }))
      const { list, warnings } = yield* connected(McpServer.tools(...tools))
      assert.deepStrictEqual(
        (yield* list).map(({ name }) => name),
        [...odd, "ok_name-1"]
      )
      assert.lengthOf(warnings, 3)
      for (const [i, name] of odd.entries()) {
        assert.include(warnings[i], JSON.stringify(name))
        assert.include(warnings[i], "^[A-Za-z0-9_-]{1,64}$")
      }
      const nameless = Tool.raw("", { execute: () => Effect.succeed("") })
      const error = yield* Effect.flip(connected(McpServer.tools(ping, nameless)))
      assert.strictEqual(error.message, 'mcpserver: tool "": empty name')
    })
  )

  it.effect("M8: a server without tools lists none, and answers facts", () =>
    Effect.gen(function* () {
      for (const registrations of [McpServer.tools(), Layer.empty]) {
        const { client, list } = yield* connected(registrations)
        assert.deepStrictEqual(yield* list, [])
        assert.deepStrictEqual(client.getServerCapabilities()?.experimental, {
          "io.github.christopherdavenport.agenttool/facts": {}
        })
        const { results } = yield* Effect.promise(() =>
          client.request(
            { method: "execution/facts", params: { calls: [] } },
            Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Unknown) }))
          )
        )
        assert.deepStrictEqual(results, [])
      }
    })
  )

  it.effect("M1, M20: tools on a server that the host built, beside what it serves itself", () =>
    Effect.gen(function* () {
      const host = new Server({ name: "host", version: "9" }, { capabilities: { logging: {} } })
      yield* McpServer.addTo(host, ping)
      yield* McpServer.addTo(host, saying("more", "more"))
      assert.deepStrictEqual(Object.keys(host.getCapabilities()).sort(), ["experimental", "logging", "tools"])
      const error = yield* Effect.flip(
        McpServer.addTo(host, Tool.raw("bad", { parameters: { type: 5 }, execute: () => Effect.succeed("") }))
      )
      assert.match(error.message, /^mcpserver: tool "bad": schema: /)
    })
  )
})

/** A connected server to which tools are added later, in a scope of their own. */
const growing = (first: Tool.Any, protocolVersion: (typeof eras)[number] = "2025-11-25") =>
  Effect.gen(function* () {
    const seen: Array<Context.Context<McpServer.Core>> = []
    const here: Layer.Layer<never, never, McpServer.Core> = Layer.effectDiscard(
      Effect.map(Effect.context<McpServer.Core>(), (context) => void seen.push(context))
    )
    // Which tool it is does not matter: it needs nothing.
    const registrations = McpServer.tools(first as Tool.Tool)
    const link = yield* connected(Layer.merge(registrations, here), { protocolVersion })
    const [core] = seen
    if (core === undefined) return assert.fail("not built")
    return { ...link, scope: { core, scope: yield* Scope.make() } }
  })

describe("telling of changes", () => {
  for (const era of eras) {
    it.effect(
      "S-20, M10: idling, listing and calling tell nothing; a layer of three tools tells once, and so does its release",
      () =>
        Effect.gen(function* () {
          const { call, client, list, of, scope } = yield* growing(ping, era)
          if (era === "2026-07-28") {
            yield* Effect.promise(() => client.listen({ toolsListChanged: true }))
          }
          const told = () => of("notifications/tools/list_changed").length
          yield* TestClock.adjust("10 seconds")
          for (let i = 0; i < 50; i++) yield* list
          for (let i = 0; i < 50; i++) yield* call("ping")
          for (let turn = 0; turn < 10; turn++) yield* nextTurn
          assert.strictEqual(told(), 0)
          const three = McpServer.tools(saying("a", "a"), saying("b", "b"), saying("c", "c"))
          yield* three.pipe(Layer.buildWithScope(scope.scope), Effect.provideContext(scope.core))
          assert.lengthOf(yield* list, 4)
          yield* turnsUntil(Effect.sync(() => told() > 0))
          for (let turn = 0; turn < 10; turn++) yield* nextTurn
          assert.strictEqual(told(), 1)
          yield* Scope.close(scope.scope, Exit.void)
          assert.lengthOf(yield* list, 1)
          yield* turnsUntil(Effect.sync(() => told() > 1))
          for (let turn = 0; turn < 10; turn++) yield* nextTurn
          assert.strictEqual(told(), 2)
          assert.strictEqual(client.getServerCapabilities()?.tools?.listChanged, true)
        })
    )
  }
})

describe("progress", () => {
  it.effect("M72: behind a backlog the latest update replaces the others, and the numbers rise all the same", () =>
    Effect.gen(function* () {
      const many = Tool.make("many", {
        execute: () =>
          Effect.as(
            Effect.forEach(
              Array.from({ length: 1_000 }, (_, i) => i + 1),
              (n) => Progress.report(`update ${n}`)
            ),
            "done"
          )
      })
      const { client, of } = yield* connected(McpServer.tools(many))
      yield* Effect.promise(() => client.callTool({ name: "many", arguments: {} }, { onprogress: () => {} }))
      const updates = of("notifications/progress").map(({ params }) => params)
      assert.isAtLeast(updates.length, 64)
      assert.isBelow(updates.length, 1_000)
      assert.strictEqual(updates.at(-1)?.message, "update 1000")
      const numbers = updates.map((params) => params?.progress ?? 0)
      assert.isTrue(numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? 0)))
    })
  )

  it.effect("M72: at low rates no update is left out", () =>
    Effect.gen(function* () {
      const many = Tool.make("many", {
        execute: () =>
          Effect.as(
            Effect.forEach(
              Array.from({ length: 200 }, (_, i) => i + 1),
              (n) => Effect.andThen(Progress.report(`update ${n}`), nextTurn)
            ),
            "done"
          )
      })
      const { client, of } = yield* connected(McpServer.tools(many))
      yield* Effect.promise(() => client.callTool({ name: "many", arguments: {} }, { onprogress: () => {} }))
      assert.lengthOf(of("notifications/progress"), 200)
    })
  )

  it.effect("M74: a tool that passes on another's updates keeps their numbers, as far as they rise", () =>
    Effect.gen(function* () {
      const inner = Tool.make("inner", {
        execute: Effect.fn(function* () {
          yield* Progress.report({ progress: 10, total: 30, message: "ten" })
          yield* Progress.report({ progress: 5, total: 30, message: "back" })
          yield* Progress.report({ progress: 20, total: 30, message: "twenty" })
          return "done"
        })
      })
      const outer = Tool.make("outer", {
        execute: Effect.fn(function* () {
          const progress = yield* Progress.Progress
          const passing = { update: (update: ToolResult.ToolResult) => progress.update(update) }
          return yield* Tool.run(inner, {}).pipe(Effect.provideService(Progress.Progress, passing))
        })
      })
      const { client, of } = yield* connected(McpServer.tools(outer))
      yield* Effect.promise(() => client.callTool({ name: "outer", arguments: {} }, { onprogress: () => {} }))
      const updates = of("notifications/progress").map(({ params }) => params)
      assert.deepStrictEqual(
        updates.map((params) => [params?.total, params?.message]),
        [
          [30, "ten"],
          [30, "back"],
          [30, "twenty"]
        ]
      )
      const [ten = 0, back = 0, twenty = 0] = updates.map((params) => params?.progress)
      assert.strictEqual(ten, 10)
      assert.isAbove(back, 10)
      assert.isBelow(back, 11)
      assert.strictEqual(twenty, 20)
    })
  )
})

// The SDK sends a notification in a later turn of the loop.
const nextTurn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const turnsUntil = (look: Effect.Effect<boolean>) =>
  Effect.gen(function* () {
    for (let turn = 0; turn < 100; turn++) {
      if (yield* look) return
      yield* nextTurn
    }
    assert.fail("100 turns, and it is not so")
  })

describe("asking", () => {
  it.effect("M28, M52: a request that is cancelled before its round has left ends the call", () =>
    Effect.gen(function* () {
      const released: Array<string> = []
      const tool = Tool.make("asks", {
        execute: Effect.fn(function* () {
          yield* Effect.acquireRelease(Effect.void, () => Effect.sync(() => void released.push("released")))
          yield* Progress.report("about to ask")
          return (yield* Elicitor.confirm("Sure?")) ? "yes" : "no"
        })
      })
      const sent: Array<Wire & { readonly id?: unknown }> = []
      const context = yield* Layer.build(
        McpServer.layerTest({
          registrations: McpServer.tools(tool),
          record: ({ from, message }) => {
            if (from === "server") sent.push(message as Wire)
          }
        })
      )
      const client = Context.get(context, McpServer.TestClient)
      const { count } = Context.get(context, McpServer.TestCalls)
      client.onerror = () => {}
      yield* Effect.promise(async () =>
        client.transport?.send({
          jsonrpc: "2.0",
          id: "raw",
          method: "tools/call",
          params: {
            name: "asks",
            arguments: {},
            _meta: {
              progressToken: 1,
              "io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientInfo": { name: "t", version: "0" },
              "io.modelcontextprotocol/clientCapabilities": { elicitation: {} }
            }
          }
        })
      )
      // The result waits for a turn of the loop, so that the updates before it are read first.
      yield* turnsUntil(Effect.map(count, ({ parked }) => parked === 1))
      assert.lengthOf(
        sent.filter(({ id }) => id === "raw"),
        0
      )
      yield* Effect.promise(async () =>
        client.transport?.send({
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: "raw", _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } }
        })
      )
      yield* turnsUntil(Effect.map(count, ({ fibers }) => fibers === 0))
      assert.deepStrictEqual(yield* count, { attached: 0, parked: 0, fibers: 0 })
      assert.deepStrictEqual(released, ["released"])
      assert.lengthOf(
        sent.filter(({ id }) => id === "raw"),
        0
      )
    })
  )
})
