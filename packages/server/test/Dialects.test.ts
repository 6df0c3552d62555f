/** Which dialect of JSON Schema a tool is written in, on the wire and in the check of its arguments. */
import { Tool } from "@agenttool/core"
import { connect } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const typed = Tool.make("typed", {
  parameters: Schema.Struct({ count: Schema.Int }),
  execute: ({ count }) => Effect.succeed(String(count))
})

const dialects = [
  "http://json-schema.org/draft-07/schema#",
  "https://json-schema.org/draft-07/schema",
  "https://json-schema.org/draft/2020-12/schema",
  "http://json-schema.org/draft/2020-12/schema#"
]

const byHand = dialects.map(($schema, index) => ({
  $schema,
  type: "object",
  title: `written by hand ${index}`,
  // Fields of a pair by position are of one dialect only; both are written, and each reads its own.
  properties: { count: { type: "integer", exclusiveMinimum: 0 } },
  required: ["count"]
}))

const tools = [
  typed,
  ...byHand.map((parameters, index) =>
    Tool.raw(`raw_${index}`, { parameters, execute: (call) => Effect.succeed(call.arguments) })
  )
]

describe("dialects", () => {
  for (const protocolVersion of ["2026-07-28", "2025-11-25"] as const) {
    it.effect(
      `S-11: a generated schema names no dialect, a supplied one its own, and both are checked: ${protocolVersion}`,
      () =>
        Effect.gen(function* () {
          const mcp = yield* connect({ tools, protocolVersion })
          const listed = yield* Effect.promise(() => mcp.client.listTools())
          // From the wire: the client's own reading puts the members it knows first.
          const sent = (yield* mcp.messages).flatMap(({ from, message }) =>
            from === "server" && "result" in message && Array.isArray(message.result.tools) ? message.result.tools : []
          )
          const schemas = sent.map((tool: { readonly inputSchema: unknown }) => JSON.stringify(tool.inputSchema))
          assert.notInclude(schemas[0] ?? "", "$schema")
          assert.deepStrictEqual(
            schemas.slice(1),
            byHand.map((schema) => JSON.stringify(schema))
          )
          for (const { name } of listed.tools) {
            const wrong = yield* mcp.call(name, { count: "one" })
            assert.isTrue(wrong.isError, name)
            assert.match(JSON.stringify(wrong.content), /invalid arguments: count/, name)
            assert.isUndefined((yield* mcp.call(name, { count: 1 })).isError, name)
          }
          for (const index of byHand.keys()) assert.isTrue((yield* mcp.call(`raw_${index}`, { count: 0 })).isError)
        }).pipe(Effect.scoped)
    )
  }
})
