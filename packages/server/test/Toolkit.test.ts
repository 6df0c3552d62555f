/**
 * Toolkits of effect/ai, served by this library and by effect/ai's own server side by side.
 */
import { Tool } from "@agenttool/core"
import { Definition, McpServer, McpSession } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Schema } from "effect"
import { McpProtocol, McpServer as AiMcpServer, McpTest, Tool as Ai, Toolkit } from "effect/ai"
import { eras } from "./hosts.ts"

// ----- a toolkit as effect/ai's own examples write them

const Sku = Schema.String.pipe(Schema.brand("Sku")).annotate({ description: "What an item is ordered by" })

class Item extends Schema.Class<Item>("test/Item")({ sku: Sku, title: Schema.String, price: Schema.Finite }) {}

class SoldOut extends Schema.TaggedError<SoldOut>()("SoldOut", { message: Schema.String }) {}

const FindItems = Ai.make("FindItems", {
  description: "Finds items by words",
  parameters: Schema.Struct({
    words: Schema.String.annotate({ description: "What to look for" }),
    limit: Schema.Natural.pipe(Schema.withDecodingDefault(Effect.succeed(2)))
  }),
  success: Schema.Array(Item),
  failureMode: "error"
})
  .annotate(Ai.Title, "Find items")
  .annotate(Ai.Readonly, true)
  .annotate(Ai.OpenWorld, false)

const CountStock = Ai.make("CountStock", {
  parameters: Schema.Struct({ sku: Sku }),
  success: Schema.Struct({ sku: Sku, available: Schema.Natural })
})

const Order = Ai.make("Order", {
  parameters: Schema.Struct({ sku: Sku }),
  success: Schema.String,
  failure: SoldOut
})

const OrderOrSay = Ai.make("OrderOrSay", {
  parameters: Schema.Struct({ sku: Sku }),
  success: Schema.String,
  failure: SoldOut,
  failureMode: "return"
})

const Reserve = Ai.make("Reserve", { success: Schema.Void, failure: Schema.Struct({ code: Schema.Finite }) })
const Break = Ai.make("Break", { success: Schema.String })

const Shop = Toolkit.make(FindItems, CountStock, Order, OrderOrSay, Reserve, Break)

const items = [1, 2, 3].map((n) => new Item({ sku: Sku.make(`s${n}`), title: `thing ${n}`, price: n }))

const order = (sku: string) =>
  sku === "s1" ? Effect.succeed("ordered") : Effect.fail(new SoldOut({ message: `no more ${sku}` }))

const ShopLayer = Shop.toLayer(
  Effect.gen(function* () {
    let reserved = 0
    yield* Effect.logDebug("the shop is open")
    return Shop.of({
      FindItems: ({ limit, words }) =>
        Effect.succeed(items.filter(({ title }) => title.includes(words)).slice(0, limit)),
      CountStock: ({ sku }) => Effect.succeed({ sku, available: 3 }),
      Order: ({ sku }) => order(sku),
      OrderOrSay: ({ sku }) => order(sku),
      Reserve: () => (++reserved > 1 ? Effect.fail({ code: 7 }) : Effect.void),
      Break: () => Effect.die(new Error("secret"))
    })
  })
)

const quiet = Logger.layer([])

/** A client of a server of ours. */
const ours = <E>(
  registrations: Layer.Layer<never, E, McpServer.Core>,
  options: {
    readonly protocolVersion?: (typeof eras)[number]
    readonly accepts?: boolean
  } = {}
) =>
  Effect.map(
    McpServer.layerTest({
      protocolVersion: options.protocolVersion ?? "2025-11-25",
      registrations,
      answer: () => (options.accepts === true ? { action: "accept" } : { action: "decline" })
    }).pipe(Layer.provide(quiet), Layer.build),
    (context) => {
      const client = Context.get(context, McpServer.TestClient)
      return {
        client,
        list: Effect.map(
          Effect.promise(() => client.listTools()),
          ({ tools }) => tools
        ),
        call: (name: string, args: Record<string, unknown> = {}) =>
          Effect.promise(() => client.callTool({ name, arguments: args })),
        refused: (name: string, args: Record<string, unknown> = {}) =>
          Effect.flip(
            Effect.tryPromise({
              try: () => client.callTool({ name, arguments: args }),
              catch: (error) => error as Error
            })
          )
      }
    }
  )

const text = ({ content }: { readonly content: ReadonlyArray<object> }) =>
  content.map((block) => ("text" in block ? String(block.text) : JSON.stringify(block))).join()

for (const protocolVersion of eras) {
  describe(`${protocolVersion}: a toolkit`, () => {
    it.live("M12, M14: is listed with names, descriptions, schemas, titles and stated hints", () =>
      Effect.gen(function* () {
        const mcp = yield* ours(McpServer.toolkit(Shop).pipe(Layer.provide(ShopLayer)), { protocolVersion })
        const tools = yield* mcp.list
        assert.deepStrictEqual(
          tools.map(({ name }) => name),
          ["FindItems", "CountStock", "Order", "OrderOrSay", "Reserve", "Break"]
        )
        const [find, count, , , reserve] = tools
        assert.strictEqual(find?.description, "Finds items by words")
        assert.strictEqual(find?.title, "Find items")
        assert.deepStrictEqual(find?.annotations, {
          title: "Find items",
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: false,
          openWorldHint: false
        })
        assert.isUndefined(count?.annotations)
        assert.deepStrictEqual(find?.inputSchema.required, ["words"])
        assert.deepStrictEqual(reserve?.inputSchema, { type: "object", properties: {}, required: [] })
        assert.isUndefined(reserve?.outputSchema)
        assert.strictEqual(count?.outputSchema?.type, "object")
        assert.strictEqual(find?.outputSchema?.type, protocolVersion === "2025-11-25" ? "object" : "array")
      })
    )

    it.live("M30, P131: answers with typed values that the client's own check lets through", () =>
      Effect.gen(function* () {
        const mcp = yield* ours(McpServer.toolkit(Shop).pipe(Layer.provide(ShopLayer)), { protocolVersion })
        // From now on the client checks structured content against the output schemas.
        yield* mcp.list
        const wrapped = (value: unknown) => (protocolVersion === "2025-11-25" ? { result: value } : value)
        const found = yield* mcp.call("FindItems", { words: "thing" })
        const two = items.slice(0, 2).map((item) => ({ ...item }))
        assert.deepStrictEqual(found.structuredContent, wrapped(two))
        assert.deepStrictEqual(JSON.parse(text(found)), two)
        const stock = yield* mcp.call("CountStock", { sku: "s1" })
        assert.deepStrictEqual(stock.structuredContent, { sku: "s1", available: 3 })
        const ordered = yield* mcp.call("Order", { sku: "s1" })
        assert.deepStrictEqual([text(ordered), ordered.structuredContent], ["ordered", wrapped("ordered")])
        const reserved = yield* mcp.call("Reserve")
        assert.deepStrictEqual(
          [text(reserved), reserved.structuredContent, reserved.isError],
          ["", undefined, undefined]
        )
      })
    )

    it.live("M22, M26, M27: says what was wrong, a failure in its words, a defect by a reference", () =>
      Effect.gen(function* () {
        const mcp = yield* ours(McpServer.toolkit(Shop).pipe(Layer.provide(ShopLayer)), { protocolVersion })
        const failed = Effect.fnUntraced(function* (name: string, args: Record<string, unknown> = {}) {
          const result = yield* mcp.call(name, args)
          assert.strictEqual(result.isError, true)
          return text(result)
        })
        assert.match(yield* failed("FindItems", {}), /^invalid arguments: .*words/)
        assert.match(yield* failed("FindItems", { words: 1 }), /^invalid arguments: words: /)
        assert.strictEqual(yield* failed("Order", { sku: "s2" }), "no more s2")
        assert.strictEqual(yield* failed("OrderOrSay", { sku: "s2" }), "no more s2")
        yield* mcp.call("Reserve")
        assert.strictEqual(yield* failed("Reserve"), '{"code":7}')
        assert.match(yield* failed("Break"), /^tool "Break" failed unexpectedly \([0-9a-f]+\)$/)
        assert.match((yield* mcp.refused("Nothing")).message, /unknown tool "Nothing"/)
      })
    )

    it.live("M47: a tool that needs approval asks for it, whoever the client is", () =>
      Effect.gen(function* () {
        const Wipe = Ai.make("Wipe", { success: Schema.String, needsApproval: true })
        const kit = Toolkit.make(Wipe)
        const registrations = McpServer.toolkit(kit).pipe(
          Layer.provide(kit.toLayer({ Wipe: () => Effect.succeed("wiped") }))
        )
        const yes = yield* ours(registrations, { protocolVersion, accepts: true })
        assert.strictEqual(text(yield* yes.call("Wipe")), "wiped")
        const no = yield* ours(registrations, { protocolVersion })
        assert.strictEqual(text(yield* no.call("Wipe")), "the user declined the call")
      })
    )
  })
}

describe("a toolkit", () => {
  it.live(
    "M12: here and at effect/ai's own server: what is the same, and what docs/from-effect-ai.md says is different",
    () =>
      Effect.gen(function* () {
        const there = yield* McpTest.makeClient(AiMcpServer.toolkit(Shop).pipe(Layer.provide(ShopLayer)), {
          protocols: [McpProtocol.v2025_11_25]
        }).pipe(Effect.provide(quiet))
        const here = yield* ours(McpServer.toolkit(Shop).pipe(Layer.provide(ShopLayer)))

        const theirs = (yield* there.listTools({})).tools
        const mine = yield* here.list
        const of = (name: string) =>
          [theirs.find((tool) => tool.name === name), mine.find((tool) => tool.name === name)] as const
        for (const { name } of theirs) {
          const [that, this_] = of(name)
          assert.deepStrictEqual([this_?.description, this_?.title], [that?.description, that?.title])
          // A tool without parameters is the one whose schema differs.
          if (name === "Reserve" || name === "Break") {
            assert.deepStrictEqual({ ...that?.inputSchema }, { type: "object", additionalProperties: false })
          } else assert.deepStrictEqual(this_?.inputSchema as unknown, { ...that?.inputSchema })
        }
        const [thatFind, thisFind] = of("FindItems")
        // Unstated hints: there MCP's defaults, in full; here all false, and none at all where nothing is stated.
        assert.strictEqual(thatFind?.annotations?.destructiveHint, true)
        assert.strictEqual(thisFind?.annotations?.destructiveHint, false)
        assert.isDefined(of("Order")[0]?.annotations)
        assert.isUndefined(of("Order")[1]?.annotations)
        // A value that is no object: there no output schema before 2026-07-28, here one that wraps it.
        assert.isUndefined(thatFind?.outputSchema)
        assert.isDefined(thisFind?.outputSchema)

        for (const [name, args] of [
          ["FindItems", { words: "thing" }],
          ["FindItems", { words: "thing", limit: 1 }],
          ["CountStock", { sku: "s1", more: true }],
          ["Order", { sku: "s1" }],
          ["Order", { sku: "s2" }]
        ] as const) {
          const [that, this_] = [yield* there.callTool({ name, arguments: args }), yield* here.call(name, args)]
          assert.deepStrictEqual(this_.isError === true, that.isError)
          assert.strictEqual(text(this_), text(that))
        }
        // A failure that is returned: there its JSON, here its message, as of any tool.
        const sold = { name: "OrderOrSay", arguments: { sku: "s2" } }
        assert.strictEqual(text(yield* there.callTool(sold)), '{"_tag":"SoldOut","message":"no more s2"}')
        assert.strictEqual(text(yield* here.call("OrderOrSay", sold.arguments)), "no more s2")
      })
  )

  it.effect("M2: its handlers, and what they need, are asked for by types", () =>
    Effect.gen(function* () {
      class Db extends Context.Service<Db, string>()("test/ToolkitDb") {}
      const Query = Ai.make("Query", { success: Schema.String, dependencies: [Db] })
      const kit = Toolkit.make(Query, CountStock)
      const handlers = kit.toLayer({
        Query: () => Effect.service(Db),
        CountStock: ({ sku }) => Effect.succeed({ sku, available: 1 })
      })
      // @ts-expect-error: there are no handlers
      const none: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = McpServer.toolkit(Shop)
      // @ts-expect-error: the handlers of another toolkit do not do
      const others: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = McpServer.toolkit(Shop).pipe(
        Layer.provide(handlers)
      )
      // @ts-expect-error: a tool of it needs the database
      const unprovided: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = McpServer.toolkit(kit).pipe(
        Layer.provide(handlers)
      )
      assert.lengthOf([none, others, unprovided], 3)
      const whole: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = McpServer.toolkit(kit).pipe(
        Layer.provide(handlers),
        Layer.provide(Layer.succeed(Db, "the database"))
      )
      const mcp = yield* ours(whole)
      assert.strictEqual(text(yield* mcp.call("Query")), "the database")
    })
  )

  it.effect("M42: a handler may use the session of the call", () =>
    Effect.gen(function* () {
      const Who = Ai.make("Who", { success: Schema.String, dependencies: [McpSession.McpSession] })
      const kit = Toolkit.make(Who)
      const mcp = yield* ours(
        McpServer.toolkit(kit).pipe(
          Layer.provide(kit.toLayer({ Who: () => Effect.map(McpSession.current, ({ lifetime }) => lifetime) }))
        )
      )
      assert.strictEqual(text(yield* mcp.call("Who")), "connection")
    })
  )

  it.effect("M1, M6: its tools are tools like others, beside those of this library", () =>
    Effect.gen(function* () {
      const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
      const mcp = yield* ours(
        Layer.mergeAll(McpServer.tools(ping), McpServer.toolkit(Shop).pipe(Layer.provide(ShopLayer)))
      )
      assert.sameMembers(
        (yield* mcp.list).map(({ name }) => name),
        ["ping", ...Object.keys(Shop.tools)]
      )
      assert.strictEqual(text(yield* mcp.call("ping")), "pong")
    })
  )

  it.effect("M3: a raw schema whose root is no object cannot be served", () =>
    Effect.gen(function* () {
      const kit = Toolkit.make(Ai.dynamic("raw", { parameters: { type: "array" }, success: Schema.Unknown }))
      const built = Layer.build(
        McpServer.layerTest({
          registrations: McpServer.toolkit(kit).pipe(Layer.provide(kit.toLayer({ raw: () => Effect.void })))
        })
      )
      const error = yield* Effect.flip(built)
      assert.strictEqual(error.message, 'mcpserver: tool "raw": schema: the root must say "type":"object"')
      assert.isTrue(Exit.isFailure(yield* Effect.exit(built)))
    })
  )
})

describe("an output schema that is wrapped for clients before 2026-07-28", () => {
  const wrap = (outputSchema: Schema.JsonObject) =>
    Definition.forLegacy({
      name: "a",
      inputSchema: { type: "object" },
      outputSchema,
      _meta: { "io.github.christopherdavenport.agenttool/tool": { replay: true } }
    }).outputSchema

  it("P131: has its pointers follow it, wherever they stand, and its data left alone", () => {
    assert.deepStrictEqual(
      wrap({
        anyOf: [{ $ref: "#/$defs/node" }, { $ref: "#" }, { $ref: "#anchor" }, { $ref: "https://example.com/x" }],
        properties: { $ref: { $ref: "#/$defs/node" }, default: { $ref: "#/$defs/node" }, enum: { type: "string" } },
        $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, default: { $ref: "#/a" } } }
      }),
      {
        type: "object",
        properties: {
          result: {
            anyOf: [
              { $ref: "#/properties/result/$defs/node" },
              { $ref: "#/properties/result" },
              { $ref: "#anchor" },
              { $ref: "https://example.com/x" }
            ],
            properties: {
              $ref: { $ref: "#/properties/result/$defs/node" },
              default: { $ref: "#/properties/result/$defs/node" },
              enum: { type: "string" }
            },
            $defs: {
              node: {
                type: "object",
                properties: { next: { $ref: "#/properties/result/$defs/node" } },
                default: { $ref: "#/a" }
              }
            }
          }
        },
        required: ["result"]
      }
    )
  })

  it("P131: is moved as it is where nothing points into it, or where it has a root of its own", () => {
    for (const schema of [
      { type: "array", items: [{ type: "string" }, { enum: ["#/a", "#"] }] },
      { $id: "https://example.com/own", type: "array", items: { $ref: "#/$defs/a" }, $defs: { a: {} } }
    ] as const) {
      const wrapped: unknown = wrap(schema)
      assert.strictEqual((wrapped as { readonly properties: { readonly result: unknown } }).properties.result, schema)
    }
  })
})
