/**
 * The law of the fast lane: whatever is sent, the answer is the SDK's. Every request goes two ways: to a listening server,
 * whose route takes the lane where it can, and to the web handler, which never does.
 */
import { Elicitor, Tool, ToolRecord, ToolResult } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Context, Effect, Layer, Logger, Schema } from "effect"
import { Headers, HttpRouter, HttpServer } from "effect/http"
import { createServer, request as httpRequest } from "node:http"
import * as FastLane from "@agenttool/server/FastLane"

const tools = [
  Tool.make("echo", {
    parameters: Schema.Struct({ text: Schema.String }),
    execute: ({ text }) => Effect.succeed(text)
  }),
  Tool.make("none", { execute: () => Effect.void }),
  Tool.make("typed", {
    success: Schema.Struct({ sum: Schema.Int }),
    execute: () => Effect.succeed({ sum: 1 })
  }),
  Tool.make("fails", { execute: () => Effect.fail("no such user") }),
  Tool.make("dies", { execute: () => Effect.die(new Error("broken")) }),
  Tool.make("records", {
    execute: () => Effect.succeed(ToolResult.text("done", { details: ToolRecord.make("a:b", { c: 1 }) }))
  }),
  Tool.make("asks", { execute: () => Effect.map(Elicitor.confirm("Sure?"), String) }),
  Tool.raw("headers", {
    parameters: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    execute: () => Effect.succeed("ok")
  })
] as const

interface Sent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {}
}

const call = (name: unknown, more: { params?: object; meta?: object; body?: object; headers?: object } = {}): Sent => ({
  headers: {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": String(name),
    ...more.headers
  },
  body: {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: {}, ...more.params, _meta: { ...envelope, ...more.meta } },
    ...more.body
  }
})

const both = Effect.gen(function* () {
  const options = { name: "law", version: "1.2.3", registrations: McpServer.tools(...tools) } as const
  const listening = HttpRouter.serve(McpServer.layerHttp(options), {
    disableLogger: true,
    disableListenLog: true
  }).pipe(
    Layer.provideMerge(
      NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
    ),
    Layer.provide(Logger.layer([]))
  )
  const { address } = Context.get(yield* Layer.build(listening), HttpServer.HttpServer)
  const port = new URL(HttpServer.formatAddress(address)).port
  const web = yield* Effect.acquireRelease(
    Effect.sync(() => McpServer.toWebHandler(options)),
    (handler) => Effect.promise(() => handler.close())
  )
  const overHttp = ({ body, headers }: Sent) =>
    Effect.callback<{ readonly status: number; readonly text: string }>((resume) => {
      const sent = httpRequest(
        { port, host: "127.0.0.1", path: "/mcp", method: "POST", headers: { ...headers } },
        (got) => {
          let text = ""
          got.setEncoding("utf8")
          got.on("data", (chunk: string) => {
            text += chunk
          })
          got.on("end", () => resume(Effect.succeed({ status: got.statusCode ?? 0, text })))
        }
      )
      sent.end(JSON.stringify(body))
    })
  const byWeb = ({ body, headers }: Sent) =>
    Effect.promise(async () => {
      const answer = await web.fetch(
        new Request("http://127.0.0.1/mcp", {
          method: "POST",
          headers: { host: "127.0.0.1", ...headers },
          body: JSON.stringify(body)
        })
      )
      return { status: answer.status, text: await answer.text() }
    })
  return (sent: Sent) => Effect.all([Effect.map(overHttp(sent), masked), Effect.map(byWeb(sent), masked)])
})

/** What differs from one call to the next: states of parked calls, references into the log. */
const masked = ({ status, text }: { readonly status: number; readonly text: string }) => {
  const data = /^data: (.+)$/m.exec(text)?.[1] ?? text
  return {
    status,
    body: data === "" ? "" : JSON.parse(data.replace(/[0-9a-f]{64}/g, "STATE").replace(/\([0-9a-f]{8}\)/g, "(REF)"))
  }
}

const isPlain = ({ body, headers }: Sent) => FastLane.read(Headers.fromInput(headers), body) !== undefined

const taken: ReadonlyArray<readonly [string, Sent]> = [
  ["a result", call("echo", { params: { arguments: { text: "hi" } } })],
  ["no arguments", call("none", { params: { arguments: undefined } })],
  ["a typed result", call("typed")],
  ["a record", call("records")],
  ["a failure", call("fails")],
  ["a defect", call("dies")],
  ["arguments that do not fit", call("echo", { params: { arguments: { text: 1 } } })],
  ["an id of 0", call("none", { body: { id: 0 } })],
  ["an id that is text", call("none", { body: { id: "a" } })],
  [
    "a client that says who it is",
    call("none", { meta: { "io.modelcontextprotocol/clientInfo": { name: "a", version: "1" } } })
  ],
  ["a parent span", call("none", { meta: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } })],
  ["a question", call("asks", { meta: { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } } })],
  ["nobody to ask", call("asks")]
]

const left: ReadonlyArray<readonly [string, Sent]> = [
  ["a progress token", call("none", { meta: { progressToken: 0 } })],
  ["a state", call("none", { params: { requestState: "x" } })],
  ["answers", call("asks", { params: { inputResponses: {} } })],
  ["another method", call("none", { body: { method: "tools/list" } })],
  ["a batch", { ...call("none"), body: [call("none").body] }],
  ["no envelope", { ...call("none"), body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "none" } } }],
  ["another version", call("none", { meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } })],
  ["another name in the header", call("none", { headers: { "mcp-name": "echo" } })],
  ["no name in the header", call("none", { headers: { "mcp-name": "" } })],
  ["another method in the header", call("none", { headers: { "mcp-method": "tools/list" } })],
  ["capabilities of the wrong kind", call("none", { meta: { "io.modelcontextprotocol/clientCapabilities": [] } })],
  [
    "capabilities of the wrong shape",
    call("none", { meta: { "io.modelcontextprotocol/clientCapabilities": { elicitation: 5 } } })
  ],
  ["client info of the wrong shape", call("none", { meta: { "io.modelcontextprotocol/clientInfo": { name: 1 } } })],
  ["arguments that are a list", call("none", { params: { arguments: [] } })],
  ["arguments that are null", call("none", { params: { arguments: null } })],
  ["an id of null", call("none", { body: { id: null } })],
  ["an id that is a fraction", call("none", { body: { id: 1.5 } })],
  ["no id", call("none", { body: { id: undefined } })],
  ["a name that is a number", call(1)],
  ["one type accepted", call("none", { headers: { accept: "application/json" } })],
  ["an extra member", call("none", { body: { extra: 1 } })],
  ["null", { ...call("none"), body: null }]
]

describe("the fast lane", () => {
  for (const [what, sent] of taken) {
    it.live(`P12, P30: takes ${what}, and answers as the SDK does`, () =>
      Effect.gen(function* () {
        assert.isTrue(isPlain(sent))
        const [lane, sdk] = yield* (yield* both)(sent)
        assert.deepStrictEqual(lane, sdk)
        assert.strictEqual(lane.status, 200)
      }).pipe(Effect.scoped)
    )
  }

  it.live("P79: an unknown tool is the SDK's to refuse", () =>
    Effect.gen(function* () {
      const [lane, sdk] = yield* (yield* both)(call("nope"))
      assert.deepStrictEqual(lane, sdk)
      assert.strictEqual(lane.body.error.code, -32602)
    }).pipe(Effect.scoped)
  )

  it.live("P27: a tool whose arguments are repeated in headers is not for the lane", () =>
    Effect.gen(function* () {
      const [lane, sdk] = yield* (yield* both)(call("headers", { params: { arguments: { region: "eu" } } }))
      assert.deepStrictEqual(lane, sdk)
      assert.strictEqual(lane.status, 400)
    }).pipe(Effect.scoped)
  )

  it.live("P22, P34: leaves everything else to the SDK, whose answer it is", () =>
    Effect.gen(function* () {
      const send = yield* both
      for (const [what, sent] of left) {
        assert.isFalse(isPlain(sent), what)
        const [lane, sdk] = yield* send(sent)
        assert.deepStrictEqual(lane, sdk, what)
      }
    }).pipe(Effect.scoped)
  )

  // One member of a good request replaced by any JSON: whichever way it goes, the answers are equal.
  const paths = [
    ["jsonrpc"],
    ["id"],
    ["params", "arguments"],
    ["params", "_meta"],
    ["params", "_meta", "io.modelcontextprotocol/clientCapabilities"],
    ["params", "_meta", "io.modelcontextprotocol/clientInfo"],
    ["params", "_meta", "traceparent"],
    ["params", "_meta", "anything"],
    ["params", "anything"]
  ] as const
  const mutation = Schema.Struct({ path: Schema.Literals(paths.map((_, index) => index)), value: Schema.Json })

  it.live("P31: one member replaced by any JSON is answered the same both ways", () =>
    Effect.gen(function* () {
      const send = yield* both
      const samples = yield* Arbitrary.sampleEffect(Arbitrary.schema(mutation), { count: 400 })
      for (const { path, value } of samples) {
        const sent = call("echo", { params: { arguments: { text: "hi" } } })
        const body = replaced(sent.body, paths[path] ?? ["id"], value)
        const [lane, sdk] = yield* send({ ...sent, body })
        assert.deepStrictEqual(lane, sdk, JSON.stringify(body))
      }
    }).pipe(Effect.scoped)
  )
})

const replaced = (value: unknown, [first, ...rest]: ReadonlyArray<string>, by: unknown): unknown =>
  first === undefined
    ? by
    : { ...(value as object), [first]: replaced((value as Record<string, unknown>)[first], rest, by) }
