import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect } from "effect"
import { npmRun } from "./programs.ts"

const connect = (era: "2026-07-28" | "2025-11-25") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const errors: Array<Error> = []
      const client = new Client(
        { name: "test", version: "0.0.0" },
        { versionNegotiation: { mode: era === "2026-07-28" ? { pin: era } : "legacy" } }
      )
      // Whatever is on standard output that is no message.
      client.onerror = (error) => void errors.push(error)
      await client.connect(new StdioClientTransport({ ...npmRun("example:stdio"), stderr: "ignore" }))
      return { client, errors }
    }),
    ({ client }) => Effect.promise(() => client.close())
  )

describe("the stdio example", () => {
  for (const era of ["2026-07-28", "2025-11-25"] as const) {
    it.live(
      "M85: lists three tools and answers their calls, to the client of the SDK",
      () =>
        Effect.gen(function* () {
          const { client, errors } = yield* connect(era)
          assert.strictEqual(client.getNegotiatedProtocolVersion(), era)
          assert.strictEqual(client.getServerVersion()?.version, "0.0.0")
          const { tools } = yield* Effect.promise(() => client.listTools())
          assert.deepStrictEqual<unknown>(
            tools.map(({ description, inputSchema, name }) => ({ name, description, inputSchema })),
            [
              {
                name: "upper",
                description: "Uppercase a string",
                inputSchema: {
                  type: "object",
                  properties: { text: { type: "string", description: "Text to uppercase" } },
                  required: ["text"]
                }
              },
              {
                name: "add",
                description: "Add two integers",
                inputSchema: {
                  type: "object",
                  properties: {
                    a: { type: "integer", description: "First addend" },
                    b: { type: "integer", description: "Second addend" }
                  },
                  required: ["a", "b"],
                  additionalProperties: false
                }
              },
              {
                name: "tiny_image",
                description: "Return a 1x1 PNG",
                inputSchema: { type: "object", properties: {}, required: [] }
              }
            ]
          )
          const call = (name: string, args: Record<string, unknown> = {}) =>
            Effect.promise(() => client.callTool({ name, arguments: args }))
          assert.deepStrictEqual((yield* call("upper", { text: "hi" })).content, [{ type: "text", text: "HI" }])
          assert.deepStrictEqual((yield* call("add", { a: 2, b: 3 })).content, [{ type: "text", text: '{"sum":5}' }])
          const [image] = (yield* call("tiny_image")).content
          assert.deepStrictEqual([image?.type, image?.type === "image" && image.mimeType], ["image", "image/png"])
          const missing = yield* call("add", { a: 2 })
          assert.strictEqual(missing.isError, true)
          const [block] = missing.content
          assert.match(block?.type === "text" ? block.text : "", /^invalid arguments.*required/)
          assert.deepStrictEqual(errors, [])
        }),
      { timeout: 60_000 }
    )
  }
})
