import { Elicitor, Progress, Tool } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const ask = Tool.make("ask", {
  parameters: Schema.Struct({ build: Schema.String }),
  execute: Effect.fn("ask")(function* ({ build }) {
    const one = yield* Elicitor.ask({ message: "where?", schema: Schema.Struct({ e: Schema.Literals(["a", "b"]) }) })
    yield* Progress.report({ progress: 1, total: 2, message: "hi" })
    const two = yield* Elicitor.confirm("sure?")
    return `${build} ${one.action === "accept" ? one.content.e : one.action} ${two}`
  })
})

for (const protocolVersion of ["2026-07-28", "2025-11-25"] as const) {
  describe(protocolVersion, () => {
    it.effect("asks twice", () =>
      Effect.gen(function* () {
        const client = yield* McpServer.TestClient
        const seen: Array<unknown> = []
        const r = yield* Effect.promise(() =>
          client.callTool({ name: "ask", arguments: { build: "b1" } }, { onprogress: (p) => void seen.push(p) })
        )
        assert.deepStrictEqual(r.content, [{ type: "text", text: "b1 a true" }])
        console.log(JSON.stringify(r), seen)
      }).pipe(
        Effect.provide(
          McpServer.layerTest({
            protocolVersion,
            registrations: McpServer.tools(ask),
            answer: (q) =>
              q.message === "where?"
                ? { action: "accept", content: { e: "a" } }
                : { action: "accept", content: { confirm: true } }
          })
        )
      )
    )
  })
}
