import { assert, describe, it } from "@effect/vitest"
import { Tool } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import * as ParamHeaders from "@agenttool/server/ParamHeaders"
import { Arbitrary, Effect, Schema } from "effect"

const schema: Schema.JsonObject = {
  type: "object",
  properties: {
    region: { type: "string", "x-mcp-header": "Region" },
    where: {
      type: "object",
      properties: { floor: { type: "integer", "x-mcp-header": "Floor" }, room: { type: "string" } }
    },
    dry: { type: "boolean", "x-mcp-header": "Dry-Run" },
    note: { type: "string" }
  }
}

const params = ParamHeaders.declared(schema)

const encode = (value: string): string => `=?base64?${Buffer.from(value).toString("base64")}?=`

/** What a client sends for a value: as it is where a header can hold it, wrapped where it cannot. */
const sent = (value: string | number | boolean): string => {
  const text = String(value)
  return /^[\t -~]*$/.test(text) && text === text.trim() && !/^=\?base64\?.*\?=$/.test(text) ? text : encode(text)
}

const mismatch = (args: unknown, headers: Readonly<Record<string, string>> = {}): string | undefined =>
  ParamHeaders.mismatch(params, args, new Headers(headers))

const missing = "the Mcp-Param-Region header is missing, but the arguments have region"
const different = "the Mcp-Param-Region header is not what the arguments have at region"
const invalid = "the Mcp-Param-Region header is not validly encoded"

describe("ParamHeaders", () => {
  it("P26: the arguments to repeat are those of the schema, at any depth of properties, in their order", () => {
    assert.deepStrictEqual(params, [
      { header: "Region", path: ["region"], type: "string" },
      { header: "Floor", path: ["where", "floor"], type: "integer" },
      { header: "Dry-Run", path: ["dry"], type: "boolean" }
    ])
    assert.deepStrictEqual(ParamHeaders.declared({ type: "object" }), [])
  })

  describe("values", () => {
    it("P27: a value and its header have to be there together, and equal", () => {
      assert.isUndefined(mismatch({ region: "eu" }, { "Mcp-Param-Region": "eu" }))
      assert.strictEqual(mismatch({ region: "eu" }), missing)
      assert.strictEqual(mismatch({ region: "eu" }, { "Mcp-Param-Region": "us" }), different)
      assert.strictEqual(mismatch({ region: "eu" }, { "Mcp-Param-Region": "EU" }), different)
      assert.strictEqual(mismatch({ region: "" }), missing)
      assert.isUndefined(mismatch({ region: "" }, { "Mcp-Param-Region": "" }))
    })

    it("P24, P27: the name of the header is read in any case", () => {
      assert.isUndefined(mismatch({ region: "eu" }, { "mcp-param-REGION": "eu" }))
    })

    it("P27: no header is expected for a value that is null or absent", () => {
      assert.isUndefined(mismatch({ region: null, where: null }))
      assert.isUndefined(mismatch({ where: {} }))
      assert.isUndefined(mismatch({}))
      assert.isUndefined(mismatch(undefined))
    })

    it("P27: what is not declared, and what only looks like a value, is not read", () => {
      assert.isUndefined(mismatch({ note: "n" }, { "Mcp-Param-Note": "other" }))
      const inherited = ParamHeaders.declared({
        properties: { constructor: { type: "string", "x-mcp-header": "C" } }
      })
      assert.isUndefined(ParamHeaders.mismatch(inherited, {}, new Headers()))
    })

    it("P27: a nested value is found at its path", () => {
      assert.isUndefined(mismatch({ where: { floor: 3 } }, { "Mcp-Param-Floor": "3" }))
      assert.strictEqual(
        mismatch({ where: { floor: 3 } }, { "Mcp-Param-Floor": "4" }),
        "the Mcp-Param-Floor header is not what the arguments have at where.floor"
      )
    })

    it.each([
      ["42", 42, true],
      ["42.0", 42, true],
      ["-7.00", -7, true],
      ["0", -0, true],
      ["42.5", 42, false],
      ["42.5", 42.5, true],
      ["43", 42, false],
      ["4e1", 40, false],
      ["0x2a", 42, false],
      [" ", 0, false],
      ["9007199254740993", 9007199254740991, false]
    ] as const)("P27: integers compare as numbers: %j for %j", (header, floor, same) => {
      const fault = mismatch({ where: { floor } }, { "Mcp-Param-Floor": header })
      assert.strictEqual(fault === undefined, same, fault)
    })

    it("P27: only integers do: the text 42.0 is not the text 42, nor is yes true", () => {
      assert.strictEqual(mismatch({ region: "42" }, { "Mcp-Param-Region": "42.0" }), different)
      assert.isUndefined(mismatch({ dry: true }, { "Mcp-Param-Dry-Run": "true" }))
      assert.isUndefined(mismatch({ dry: false }, { "Mcp-Param-Dry-Run": "false" }))
      assert.isDefined(mismatch({ dry: true }, { "Mcp-Param-Dry-Run": "yes" }))
    })

    it("P27, P80: what no header can carry needs none, so that the tool's own check speaks to the model; one that is there is wrong", () => {
      for (const region of [["eu"], { eu: true }]) {
        assert.isUndefined(mismatch({ region }))
        assert.strictEqual(mismatch({ region }, { "Mcp-Param-Region": "eu" }), different)
      }
      assert.isUndefined(mismatch({ where: { floor: 2 ** 53 } }))
    })
  })

  describe("encoding", () => {
    it.each(["Hello", "Hello, 世界", " padded ", "line1\nline2", "=?base64?literal?=", "\uFEFFmark", ""])(
      "P25: a wrapped value is decoded before it is compared: %j",
      (region) => {
        assert.isUndefined(mismatch({ region }, { "Mcp-Param-Region": encode(region) }))
        assert.strictEqual(mismatch({ region: `${region}!` }, { "Mcp-Param-Region": encode(region) }), different)
      }
    )

    it.each(["=?base64?SGVsbG8=", "SGVsbG8=", "=?BASE64?SGVsbG8=?=", "base64?SGVsbG8=?="])(
      "P25: without the exact markers, a value stands for itself: %s",
      (region) => {
        assert.isUndefined(mismatch({ region }, { "Mcp-Param-Region": region }))
        assert.strictEqual(mismatch({ region: "Hello" }, { "Mcp-Param-Region": region }), different)
      }
    )

    it.each([
      "=?base64?SGVsbG8?=",
      "=?base64?SGVs!!!bG8=?=",
      "=?base64?SGVs bG8=?=",
      "=?base64?_-8=?=",
      "=?base64?/w==?="
    ])("P25: a wrapped value that is no base64 of UTF-8 is refused, whatever the arguments have: %s", (header) => {
      assert.strictEqual(mismatch({ region: "Hello" }, { "Mcp-Param-Region": header }), invalid)
      assert.strictEqual(mismatch({}, { "Mcp-Param-Region": header }), invalid)
    })

    it("P25: so is a value with characters that a header may not have", () => {
      assert.strictEqual(mismatch({ region: "\u00e9" }, { "Mcp-Param-Region": "\u00e9" }), invalid)
    })

    it("P25: a number may be wrapped as well", () => {
      assert.isUndefined(mismatch({ where: { floor: 3 } }, { "Mcp-Param-Floor": encode("3.0") }))
    })

    it.prop(
      "P25, P27: what a client sends for its arguments fits, and no longer fits when an argument is another",
      {
        region: Arbitrary.schema(Schema.String),
        floor: Arbitrary.schema(Schema.Int),
        dry: Arbitrary.schema(Schema.Boolean)
      },
      ({ dry, floor, region }) => {
        // An unpaired surrogate has no UTF-8.
        const name = Buffer.from(region).toString()
        const headers = {
          "Mcp-Param-Region": sent(name),
          "Mcp-Param-Floor": sent(floor),
          "Mcp-Param-Dry-Run": sent(dry)
        }
        assert.isUndefined(mismatch({ region: name, where: { floor }, dry }, headers))
        assert.isDefined(mismatch({ region: `${name}x`, where: { floor }, dry }, headers))
        assert.isDefined(mismatch({ region: name, where: { floor: floor + 1 }, dry }, headers))
        assert.isDefined(mismatch({ region: name, where: { floor }, dry: !dry }, headers))
      }
    )
  })

  describe("over HTTP", () => {
    const travel = Tool.raw("travel", {
      parameters: schema,
      execute: (call) => Effect.succeed(call.arguments)
    })

    const endpoint = Effect.acquireRelease(
      Effect.sync(() =>
        McpServer.toWebHandler({ name: "test", version: "0.0.0", registrations: McpServer.tools(travel) })
      ),
      ({ close }) => Effect.promise(close)
    )

    const version = "2026-07-28"

    const call = (id: string | number, args: Schema.JsonObject, headers: Readonly<Record<string, string>> = {}) =>
      new Request("http://127.0.0.1/mcp", {
        method: "POST",
        headers: {
          host: "127.0.0.1",
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": version,
          "mcp-method": "tools/call",
          "mcp-name": "travel",
          ...headers
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id,
          method: "tools/call",
          params: {
            name: "travel",
            arguments: args,
            _meta: {
              "io.modelcontextprotocol/protocolVersion": version,
              "io.modelcontextprotocol/clientCapabilities": {}
            }
          }
        })
      })

    interface Body {
      readonly [member: string]: unknown
      readonly error?: { readonly [member: string]: unknown }
      readonly result?: { readonly isError?: boolean; readonly content: ReadonlyArray<unknown> }
    }

    const answer = Effect.fnUntraced(function* (request: Request) {
      const { fetch } = yield* endpoint
      const response = yield* Effect.promise(() => fetch(request))
      // Whatever is not there is not equal to what a test wants.
      const body = (yield* Effect.promise(() => response.json())) as Body
      return { status: response.status, body }
    })

    it.effect("P27: a call whose headers and arguments disagree is answered 400 and -32020, under its own id", () =>
      Effect.gen(function* () {
        for (const id of ["one", 2, 0]) {
          assert.deepStrictEqual(yield* answer(call(id, { region: "eu" })), {
            status: 400,
            body: { jsonrpc: "2.0", id, error: { code: -32020, message: `Header mismatch: ${missing}` } }
          })
        }
        const wrong = yield* answer(call(3, { region: "eu" }, { "mcp-param-region": "=?base64?dXM?=" }))
        assert.deepStrictEqual([wrong.status, wrong.body.error?.code], [400, -32020])
      })
    )

    it.effect("P27: one whose headers fit runs, and so does one that needs none", () =>
      Effect.gen(function* () {
        const fit = yield* answer(call(1, { region: "eu" }, { "mcp-param-region": encode("eu") }))
        assert.strictEqual(fit.status, 200)
        assert.deepStrictEqual(fit.body.result?.content, [{ type: "text", text: '{"region":"eu"}' }])
        const none = yield* answer(call(2, { note: "n" }))
        assert.strictEqual(none.status, 200)
        assert.deepStrictEqual(none.body.result?.content, [{ type: "text", text: `{"note":"n"}` }])
      })
    )

    it.effect("P24, P27: clients of 2025 know no such headers and are not asked for them", () =>
      Effect.gen(function* () {
        const { fetch } = yield* endpoint
        const send = (session: string | null, message: Readonly<Record<string, unknown>>) =>
          Effect.promise(() =>
            fetch(
              new Request("http://127.0.0.1/mcp", {
                method: "POST",
                headers: {
                  host: "127.0.0.1",
                  "content-type": "application/json",
                  accept: "application/json, text/event-stream",
                  ...(session === null ? {} : { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" })
                },
                body: JSON.stringify({ jsonrpc: "2.0", ...message })
              })
            )
          )
        const opened = yield* send(null, {
          id: 1,
          method: "initialize",
          params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "old", version: "1" } }
        })
        const session = opened.headers.get("mcp-session-id")
        yield* Effect.promise(() => opened.text())
        yield* send(session, { method: "notifications/initialized" })
        const called = yield* send(session, {
          id: 2,
          method: "tools/call",
          params: { name: "travel", arguments: { region: "eu" } }
        })
        assert.strictEqual(called.status, 200)
        assert.include(yield* Effect.promise(() => called.text()), String.raw`{\"region\":\"eu\"}`)
      })
    )
  })
})
