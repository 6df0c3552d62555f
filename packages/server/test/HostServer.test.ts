/**
 * Tools on servers of the SDK that a host made, and the handler of one tool alone.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { Definition, McpServer, McpSession, Settings, Wire } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { type Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { createMcpHandler, InMemoryTransport, McpServer as SdkMcpServer, Server } from "@modelcontextprotocol/server"
import { Context, Effect, Exit, Fiber, Layer, Logger, Schema, Scope } from "effect"
import { callText, client, connectTo, eras, failureOf, listed } from "./hosts.ts"
import { until } from "./support/Link.ts"

const saying = (name: string, words: string) => Tool.make(name, { execute: () => Effect.succeed(words) })

const ask = Tool.make("ask", {
  description: "Asks whether it may",
  execute: () => Effect.map(Elicitor.confirm("May I?"), (may) => (may ? "it may" : "it may not"))
})

const yes = { answer: () => ({ action: "accept" as const, content: { confirm: true } }) }

const facts = (connected: Client, ...names: ReadonlyArray<string>) =>
  Effect.promise(() =>
    connected.request(
      { method: Wire.factsMethod, params: { calls: names.map((name) => ({ name })) } },
      Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Json) }))
    )
  ).pipe(Effect.map(({ results }) => results))

const bare = () => new Server({ name: "host", version: "1.0.0" }, { capabilities: {} })

for (const era of eras) {
  describe(`${era}: a host's server`, () => {
    it.live("M1, M75, M83: has the tools that were added, answers facts, and keeps what it advertised itself", () =>
      Effect.gen(function* () {
        const host = new Server(
          { name: "host", version: "1.0.0" },
          {
            capabilities: { experimental: { "example.com/own": { on: true } }, completions: {} },
            instructions: "Mine."
          }
        )
        yield* McpServer.addTo(host, ask, saying("hi", "hello").pipe(Tool.facts(() => Effect.succeed({ calls: [] }))))
        const connected = yield* connectTo(host, era, yes)
        assert.deepStrictEqual(connected.getServerVersion(), { name: "host", version: "1.0.0" })
        assert.strictEqual(connected.getInstructions(), "Mine.")
        assert.deepStrictEqual(connected.getServerCapabilities(), {
          completions: {},
          tools: { listChanged: true },
          experimental: { "example.com/own": { on: true }, [Wire.factsCapability]: {} }
        })
        assert.deepStrictEqual(yield* listed(connected), ["ask", "hi"])
        assert.strictEqual(yield* callText(connected, "ask"), "it may")
        assert.deepStrictEqual(yield* facts(connected, "ask", "hi"), [
          { replay: "unknown" },
          { facts: { calls: [] }, replay: "unknown" }
        ])
      })
    )

    it.live("M1: keeps its own prompts and resources", () =>
      Effect.gen(function* () {
        const host = new SdkMcpServer({ name: "host", version: "1.0.0" })
        host.registerPrompt("greet", {}, () => ({
          messages: [{ role: "user", content: { type: "text", text: "hello" } }]
        }))
        yield* McpServer.addTo(host, ask)
        host.registerResource("readme", "file:///readme", {}, ({ href }) => ({
          contents: [{ uri: href, text: "read me" }]
        }))
        const connected = yield* connectTo(host, era, yes)
        assert.hasAllKeys(connected.getServerCapabilities(), ["prompts", "resources", "tools", "experimental"])
        const { prompts } = yield* Effect.promise(() => connected.listPrompts())
        assert.deepStrictEqual(
          prompts.map(({ name }) => name),
          ["greet"]
        )
        const { messages } = yield* Effect.promise(() => connected.getPrompt({ name: "greet" }))
        assert.deepStrictEqual(messages[0]?.content, { type: "text", text: "hello" })
        const { contents } = yield* Effect.promise(() => connected.readResource({ uri: "file:///readme" }))
        assert.deepStrictEqual(contents[0], { uri: "file:///readme", text: "read me" })
        assert.strictEqual(yield* callText(connected, "ask"), "it may")
      })
    )

    it.live(
      "M6, M7, M10, M82: adding again adds, the later of two names wins everywhere, and clients are told once",
      () =>
        Effect.gen(function* () {
          const host = bare()
          let told = 0
          yield* McpServer.addTo(host, saying("a", "a 1"), saying("b", "b 1"))
          const connected = yield* connectTo(host, era, { toolsChanged: () => void told++ })
          assert.deepStrictEqual(yield* listed(connected), ["a", "b"])
          const later = yield* Scope.make()
          const claiming = saying("b", "b 2").pipe(Tool.facts(() => Effect.succeed({})))
          yield* Scope.provide(McpServer.addTo(host, claiming, saying("c", "c 1"), saying("d", "d 1")), later)
          yield* until(
            Effect.sync(() => told),
            (times) => times === 1
          )
          assert.deepStrictEqual(yield* listed(connected), ["a", "b", "c", "d"])
          assert.deepStrictEqual(
            [yield* callText(connected, "a"), yield* callText(connected, "b"), yield* callText(connected, "c")],
            ["a 1", "b 2", "c 1"]
          )
          const [first, second] = yield* facts(connected, "a", "b")
          assert.deepStrictEqual(
            [first, second],
            [{ replay: "unknown" }, { facts: { calls: null }, replay: "unknown" }]
          )
          // Its tools go with their scope, and the one before is back.
          yield* Scope.close(later, Exit.void)
          yield* until(
            Effect.sync(() => told),
            (times) => times === 2
          )
          assert.deepStrictEqual(yield* listed(connected), ["a", "b"])
          assert.strictEqual(yield* callText(connected, "b"), "b 1")
          assert.strictEqual((yield* failureOf(() => connected.callTool({ name: "c", arguments: {} }))).code, -32602)
          assert.strictEqual(told, 2)
        })
    )

    it.live("M28, M60: calls of tools that were added later are stopped with them, those of others go on", () =>
      Effect.gen(function* () {
        const host = bare()
        const started: Array<string> = []
        const ended: Array<string> = []
        const holding = (name: string) =>
          Tool.make(name, {
            execute: () =>
              Effect.andThen(
                Effect.sync(() => void started.push(name)),
                Effect.onInterrupt(Effect.never, () => Effect.sync(() => void ended.push(name)))
              )
          })
        yield* McpServer.addTo(host, holding("first"))
        const connected = yield* connectTo(host, era)
        const later = yield* Scope.make()
        yield* McpServer.addTo(host, holding("later")).pipe(
          Scope.provide(later),
          Effect.provideService(Settings.Settings, Settings.make({ removalGrace: "20 millis" }))
        )
        const first = yield* Effect.forkScoped(callText(connected, "first"))
        const call = yield* Effect.forkScoped(callText(connected, "later"))
        yield* until(
          Effect.sync(() => started.length),
          (calls) => calls === 2
        )
        yield* Scope.close(later, Exit.void)
        assert.strictEqual(
          yield* Fiber.join(call),
          'mcpserver: tool "later": the call was stopped: the tool was removed; call the tool again'
        )
        assert.deepStrictEqual(ended, ["later"])
        assert.isUndefined(first.pollUnsafe())
      })
    )

    it.live("M42, M43, M45: a connection is a session, and the next connection of the server is another", () =>
      Effect.gen(function* () {
        class Counter extends Context.Service<Counter, { count: number }>()("test/HostCounter") {}
        const lived = { opened: 0, closed: 0 }
        const layer = Layer.effect(
          Counter,
          Effect.acquireRelease(
            Effect.sync(() => {
              lived.opened++
              return { count: 0 }
            }),
            () => Effect.sync(() => void lived.closed++)
          )
        )
        const count = Tool.make("count", {
          execute: () => Effect.map(Effect.service(Counter), (counter) => String(++counter.count))
        }).pipe(McpSession.provide(layer))
        const hold = Tool.make("hold", { execute: () => Effect.never })
        const host = bare()
        yield* McpServer.addTo(host, count, hold)
        const once = Effect.scoped(
          Effect.gen(function* () {
            const connected = yield* connectTo(host, era)
            yield* Effect.forkScoped(Effect.exit(callText(connected, "hold")))
            return [yield* callText(connected, "count"), yield* callText(connected, "count")]
          })
        )
        assert.deepStrictEqual(yield* once, ["1", "2"])
        yield* until(
          Effect.sync(() => lived.closed),
          (closed) => closed === 1
        )
        // A host may put its own listener in the place of ours.
        host.onclose = () => {}
        assert.deepStrictEqual(yield* once, ["1", "2"])
        assert.deepStrictEqual(yield* once, ["1", "2"])
        assert.strictEqual(lived.opened, 3)
        yield* until(
          Effect.sync(() => lived.closed),
          (closed) => closed === 2
        )
      })
    )

    it.live("M61: the scope of the first tools ends everything: its calls, its sessions, and what it had listed", () =>
      Effect.gen(function* () {
        const ended: Array<string> = []
        const host = bare()
        let told = 0
        const scope = yield* Scope.make()
        const parking = Tool.make("park", {
          execute: () => Effect.onInterrupt(Elicitor.confirm("?"), () => Effect.sync(() => void ended.push("parked")))
        })
        yield* Scope.provide(McpServer.addTo(host, parking), scope)
        const connected = yield* connectTo(host, era, {
          toolsChanged: () => void told++,
          answer: () => {
            // While the question is with the user.
            Effect.runFork(Scope.close(scope, Exit.void))
            return { action: "cancel" }
          }
        })
        yield* Effect.exit(Effect.promise(() => connected.callTool({ name: "park", arguments: {} })))
        yield* until(
          Effect.sync(() => told),
          (times) => times === 1
        )
        assert.deepStrictEqual(yield* listed(connected), [])
        assert.match(yield* callText(connected, "park"), /the server is shutting down; call the tool again$/)
        // Others may be added then.
        yield* McpServer.addTo(host, saying("next", "next 1"))
        assert.deepStrictEqual(yield* listed(connected), ["next"])
        assert.strictEqual(yield* callText(connected, "next"), "next 1")
      })
    )

    it.live("M20: one tool's handler on a server of the host, listed by its definition, without facts", () =>
      Effect.gen(function* () {
        const host = new Server({ name: "host", version: "1.0.0" }, { capabilities: { tools: {} } })
        const handler = yield* McpServer.handler(ask)
        host.setRequestHandler("tools/list", () => ({ tools: [McpServer.definition(ask)] }))
        // Under a name of the host's own.
        host.setRequestHandler("tools/call", handler(host))
        const connected = yield* connectTo(host, era, yes)
        assert.deepStrictEqual(connected.getServerCapabilities(), { tools: {} })
        const { tools } = yield* Effect.promise(() => connected.listTools())
        assert.strictEqual(JSON.stringify(tools), JSON.stringify([Definition.make(ask)]))
        assert.deepStrictEqual(tools[0]?._meta, { [Wire.toolKey]: { replay: true } })
        assert.strictEqual(yield* callText(connected, "ask"), "it may")
        assert.strictEqual(yield* callText(connected, "of_the_host"), "it may")
        const refused = yield* failureOf(() =>
          connected.request({ method: Wire.factsMethod, params: {} }, Schema.toStandardSchemaV1(Schema.Struct({})))
        )
        assert.strictEqual(refused.code, -32601)
      })
    )
  })
}

describe("a host's server", () => {
  it.effect("M2, M3: a tool that cannot be served leaves the server as it was, and names itself", () =>
    Effect.gen(function* () {
      const host = bare()
      const broken = Tool.raw("broken", {
        parameters: { type: "object", properties: { a: { $ref: "#/$defs/none" } } },
        execute: () => Effect.succeed("")
      })
      const error = yield* Effect.flip(McpServer.addTo(host, saying("a", "a 1"), broken))
      assert.strictEqual(error._tag, "RegistrationError")
      assert.match(error.message, /^mcpserver: tool "broken": schema: /)
      assert.deepStrictEqual(host.getCapabilities(), {})
      host.assertCanSetRequestHandler("tools/list")
      host.assertCanSetRequestHandler("tools/call")
      host.assertCanSetRequestHandler(Wire.factsMethod)
      yield* McpServer.addTo(host, saying("b", "b 1"))
      const refused = yield* Effect.flip(McpServer.addTo(host, saying("c", "c 1"), broken))
      assert.strictEqual(refused.tool, "broken")
      const connected = yield* connectTo(host, "2025-11-25")
      assert.deepStrictEqual(yield* listed(connected), ["b"])
    })
  )

  it.effect("M1: has tools from before it is connected, and none of its own", () =>
    Effect.gen(function* () {
      const late = bare()
      const [one] = InMemoryTransport.createLinkedPair()
      yield* Effect.promise(() => late.connect(one))
      assert.strictEqual(
        (yield* Effect.flip(McpServer.addTo(late, saying("a", "")))).message,
        'mcpserver: tool "a": the server is connected: its first tools are added before'
      )
      const owner = new SdkMcpServer({ name: "host", version: "1.0.0" })
      owner.registerTool("own", {}, () => ({ content: [{ type: "text", text: "mine" }] }))
      assert.strictEqual(
        (yield* Effect.flip(McpServer.addTo(owner, saying("a", "")))).message,
        'mcpserver: tool "a": the server has tools of its own, and can have one set only'
      )
      const connected = yield* connectTo(owner, "2025-11-25")
      assert.deepStrictEqual(yield* listed(connected), ["own"])
      assert.strictEqual(yield* callText(connected, "own"), "mine")
      // The other way round the SDK says so.
      const ours = new SdkMcpServer({ name: "host", version: "1.0.0" })
      yield* McpServer.addTo(ours, saying("a", ""))
      assert.throws(() => ours.registerTool("own", {}, () => ({ content: [] })), /tools\/list/)
    })
  )

  it.effect("M8: with no tools at all answers facts and lists nothing", () =>
    Effect.gen(function* () {
      const host = bare()
      yield* McpServer.addTo(host)
      const connected = yield* connectTo(host, "2025-11-25")
      assert.deepStrictEqual(yield* listed(connected), [])
      assert.deepStrictEqual(yield* facts(connected, "a"), [{ error: 'unknown tool "a"', replay: "unknown" }])
    })
  )

  it.effect("M6: each name that is replaced is one warning that names the tool", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.map(Logger.formatLogFmt, (line) => void lines.push(line))
      const host = bare()
      yield* McpServer.addTo(host, saying("a", "a 1"), saying("b", "b 1")).pipe(
        Effect.andThen(McpServer.addTo(host, saying("a", "a 2"), saying("a", "a 3"))),
        Effect.provide(Logger.layer([logger]))
      )
      assert.lengthOf(
        lines.filter((line) => line.includes("level=Warn") || line.includes("level=WARN")),
        2
      )
      assert.isTrue(
        lines.every((line) => line.includes('\\"a\\"')),
        lines.join("\n")
      )
      const connected = yield* connectTo(host, "2025-11-25")
      assert.strictEqual(yield* callText(connected, "a"), "a 3")
    })
  )

  it.effect("M42: a tool finds what was around the adding of it, with the settings of that place", () =>
    Effect.gen(function* () {
      class Db extends Context.Service<Db, string>()("test/HostDb") {}
      const query = Tool.make("query", { execute: () => Effect.service(Db) })
      const die = Tool.make("die", { execute: () => Effect.die("secret") })
      const host = bare()
      // @ts-expect-error: nobody has provided the database
      const missing: Effect.Effect<void, McpServer.RegistrationError, Scope.Scope> = McpServer.addTo(host, query)
      assert.isDefined(missing)
      yield* McpServer.addTo(host, query, die).pipe(
        Effect.provideService(Db, "the database"),
        Effect.provideService(Settings.Settings, Settings.make({ showDefects: true }))
      )
      const connected = yield* connectTo(host, "2025-11-25")
      assert.strictEqual(yield* callText(connected, "query"), "the database")
      assert.strictEqual(yield* callText(connected, "die"), 'tool "die" panicked: secret')
    })
  )
})

describe("a server that is made", () => {
  for (const era of eras) {
    it.live(`M1, M11: has name, version, instructions and tools (${era})`, () =>
      Effect.gen(function* () {
        const server = yield* McpServer.make(
          { name: "made", version: "2.0.0", instructions: "Call.", maxRequests: 1 },
          ask
        )
        const connected = yield* connectTo(server, era, yes)
        assert.deepStrictEqual(connected.getServerVersion(), { name: "made", version: "2.0.0" })
        assert.strictEqual(connected.getInstructions(), "Call.")
        assert.deepStrictEqual(yield* listed(connected), ["ask"])
        const text = yield* callText(connected, "ask")
        if (era === "2025-11-25") assert.strictEqual(text, "it may")
        else assert.match(text, /the client makes 1 requests of a call at most/)
      })
    )
  }

  it.live("M11, M84: has no instructions where none or empty ones are given, and the default settings", () =>
    Effect.gen(function* () {
      for (const options of [
        { name: "made", version: "2.0.0" },
        { name: "made", version: "2.0.0", instructions: "" }
      ]) {
        const connected = yield* connectTo(yield* McpServer.make(options, ask), "2026-07-28", yes)
        assert.isUndefined(connected.getInstructions())
        assert.strictEqual(yield* callText(connected, "ask"), "it may")
      }
    })
  )

  it.effect("M2: is none where a tool cannot be served", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(McpServer.make({ name: "made", version: "2.0.0" }, saying("", "")))
      assert.strictEqual(error.message, 'mcpserver: tool "": empty name')
    })
  )
})

describe("the handler of one tool", () => {
  it.live("M44, M60: goes on with a call on whichever of a host's servers the next request comes", () =>
    Effect.gen(function* () {
      const handler = yield* McpServer.handler(ask)
      let servers = 0
      const http = createMcpHandler(() => {
        servers++
        const host = new Server({ name: "host", version: "1.0.0" }, { capabilities: { tools: {} } })
        host.setRequestHandler("tools/list", () => ({ tools: [McpServer.definition(ask)] }))
        host.setRequestHandler("tools/call", handler(host))
        return host
      })
      const over = (era: "2026-07-28" | "2025-11-25") =>
        Effect.acquireRelease(
          Effect.promise(async () => {
            const made = client(era, yes)
            await made.connect(
              new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), {
                fetch: (url, init) => http.fetch(new Request(url, init))
              })
            )
            return made
          }),
          (made) => Effect.promise(() => made.close())
        )
      const connected = yield* over("2026-07-28")
      assert.strictEqual(yield* callText(connected, "ask"), "it may")
      assert.isAtLeast(servers, 3)
      // Without a session there is no way back to a 2025 client.
      assert.strictEqual(yield* callText(yield* over("2025-11-25"), "ask"), "it may not")
    })
  )

  it.effect("M3: is none where its tool cannot be served", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(McpServer.handler(saying("", "")))
      assert.strictEqual(error.message, 'mcpserver: tool "": empty name')
    })
  )
})
