/**
 * What a tool asks of the client beside a question to its user, in both eras.
 */
import { Tool } from "@agenttool/core"
import { ClientRequests } from "@agenttool/server"
import { connect } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import { type ClientCapabilities, ProtocolError } from "@modelcontextprotocol/client"
import { Effect, type Schema } from "effect"
import { accept, asked, goodText, reply, request, silent, start } from "./processes.ts"

const prompt = {
  messages: [{ role: "user", content: { type: "text", text: "Name a colour" } }],
  maxTokens: 10
} as const

const colour = Tool.make("colour", {
  execute: () =>
    Effect.match(ClientRequests.createMessage(prompt), {
      onSuccess: (message) => JSON.stringify([message.model, message.role, message.content]),
      onFailure: (error) => `${error._tag} ${error.method}: ${error.message}`
    })
})

const where = Tool.make("where", {
  execute: () =>
    Effect.match(ClientRequests.listRoots, {
      onSuccess: (roots) => JSON.stringify(roots),
      onFailure: (error) => `${error._tag} ${error.method}: ${error.message}`
    })
})

const home = { uri: "file:///home/ada", name: "home" }
const bare = { uri: "file:///tmp" }
const red = { model: "m1", role: "assistant", content: { type: "text", text: "red" } } as const

const needy = where.pipe(ClientRequests.require({ roots: {}, sampling: { tools: {} } }))

for (const protocolVersion of ["2026-07-28", "2025-11-25"] as const) {
  /** A client that offers this, and answers as it should. */
  const open = <const Tools extends ReadonlyArray<Tool.Tool<unknown, never>>>(
    tools: Tools,
    capabilities: ClientCapabilities
  ) =>
    Effect.tap(connect({ tools, protocolVersion, capabilities }), ({ client }) =>
      Effect.sync(() => {
        if (capabilities.sampling !== undefined) {
          client.setRequestHandler("sampling/createMessage", (asked) => {
            assert.deepStrictEqual(asked.params.messages, [prompt.messages[0]])
            assert.strictEqual(asked.params.maxTokens, 10)
            return red
          })
        }
        if (capabilities.roots !== undefined) {
          client.setRequestHandler("roots/list", () => ({ roots: [home, bare] }))
        }
      })
    )

  describe(`${protocolVersion}: requests to the client`, () => {
    it.live("P38: a completion of the client's model, with the parameters and the result that MCP has", () =>
      Effect.gen(function* () {
        const mcp = yield* open([colour], { sampling: {} })
        assert.deepStrictEqual(JSON.parse(yield* mcp.text("colour")), [red.model, red.role, red.content])
        const { attached, parked } = yield* mcp.count
        assert.deepStrictEqual([attached, parked], [0, 0])
      })
    )

    it.live("P38: the client's roots, with and without a name", () =>
      Effect.gen(function* () {
        const mcp = yield* open([where], { roots: {} })
        assert.deepStrictEqual(JSON.parse(yield* mcp.text("where")), [home, bare])
      })
    )

    it.live("P39, P14: what the client does not offer fails where it is asked for, and nothing is sent", () =>
      Effect.gen(function* () {
        const mcp = yield* open([colour, where], { elicitation: { form: {} } })
        const before = (yield* mcp.messages).length
        assert.strictEqual(
          yield* mcp.text("colour"),
          "ClientRequestFailed sampling/createMessage: mcpserver: sampling/createMessage: the client does not offer it"
        )
        assert.strictEqual(
          yield* mcp.text("where"),
          "ClientRequestFailed roots/list: mcpserver: roots/list: the client does not offer it"
        )
        // Two calls and two results.
        assert.lengthOf((yield* mcp.messages).slice(before), 4)
        const partly = yield* open([colour, where], { roots: {} })
        assert.match(yield* partly.text("colour"), /does not offer it$/)
        assert.deepStrictEqual(JSON.parse(yield* partly.text("where")), [home, bare])
      })
    )

    it.live("P51: an answer of another kind is a failure that says so", () =>
      Effect.gen(function* () {
        const mcp = yield* connect({ tools: [where], protocolVersion, capabilities: { roots: {} } })
        mcp.client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///a", name: 7 }] }) as never)
        assert.strictEqual(
          yield* mcp.text("where"),
          "ClientRequestFailed roots/list: mcpserver: roots/list: the client answered with something else"
        )
      })
    )

    it.live("P14: a tool that needs what the client does not offer is not run", () =>
      Effect.gen(function* () {
        for (const [capabilities, lacking] of [
          [{ elicitation: {} }, { roots: {}, sampling: { tools: {} } }],
          [{ roots: {}, sampling: {} }, { sampling: { tools: {} } }],
          [{ sampling: { tools: {} } }, { roots: {} }]
        ] as const) {
          const mcp = yield* open([needy], capabilities)
          const names = Object.keys(lacking).join(", ")
          if (protocolVersion === "2026-07-28") {
            const error = yield* Effect.flip(
              Effect.tryPromise({
                try: () => mcp.client.callTool({ name: "where", arguments: {} }),
                catch: (thrown) => thrown
              })
            )
            assert.instanceOf(error, ProtocolError)
            assert.strictEqual(error.code, -32021)
            assert.deepStrictEqual(error.data, { requiredCapabilities: lacking })
            assert.include(error.message, `tool "where" needs a client that offers ${names}`)
          } else {
            const result = yield* mcp.call("where")
            assert.strictEqual(result.isError, true)
            assert.deepStrictEqual(result.content, [
              { type: "text", text: `mcpserver: tool "where" needs a client that offers ${names}` }
            ])
          }
        }
        const able = yield* open([needy], { roots: {}, sampling: { tools: {} } })
        assert.deepStrictEqual(JSON.parse(yield* able.text("where")), [home, bare])
      })
    )
  })
}

describe("requests to the client", () => {
  it.effect("P38: are input requests of a round, numbered with its questions", () =>
    Effect.gen(function* () {
      const { calls } = yield* start([colour, where])
      const round = asked(yield* calls.start(request("colour"), silent))
      assert.deepStrictEqual(round.questions, [
        { id: "elicit_1", method: "sampling/createMessage", params: prompt as unknown as Schema.Json }
      ])
      const end = yield* calls.resume(reply("colour", round.state, { elicit_1: red }), silent)
      assert.deepStrictEqual(JSON.parse(goodText(end)), [red.model, red.role, red.content])
      const roots = asked(yield* calls.start(request("where"), silent))
      assert.deepStrictEqual(roots.questions, [{ id: "elicit_1", method: "roots/list", params: {} }])
      const listed = yield* calls.resume(reply("where", roots.state, { elicit_1: { roots: [bare] } }), silent)
      assert.deepStrictEqual(JSON.parse(goodText(listed)), [bare])
    })
  )

  it.effect("P51, M46: an answer to something else, and a client that no longer offers it, are failures", () =>
    Effect.gen(function* () {
      const { calls } = yield* start([colour, where])
      const answered = Effect.fnUntraced(function* (tool: string, answer: Schema.Json, capabilities?: Schema.Json) {
        const { state } = asked(yield* calls.start(request(tool), silent))
        const rest = capabilities === undefined ? {} : { capabilities }
        return goodText(yield* calls.resume(reply(tool, state, { elicit_1: answer }, rest), silent))
      })
      const other = (method: string) =>
        `ClientRequestFailed ${method}: mcpserver: ${method}: the client answered with something else`
      for (const answer of [accept({}), null, [], "red", { roots: [{}] }]) {
        assert.strictEqual(yield* answered("where", answer), other("roots/list"))
      }
      for (const answer of [accept({}), null, [], "red", { roots: [bare] }]) {
        assert.strictEqual(yield* answered("colour", answer), other("sampling/createMessage"))
      }
      const { state } = asked(yield* calls.start(request("where"), silent))
      const gone = yield* calls.resume(reply("where", state, {}, { capabilities: {} }), silent)
      assert.match(goodText(gone), /the client does not offer it$/)
    })
  )

  it.effect("P55: answers that come with a first request are not for them", () =>
    Effect.gen(function* () {
      const { calls } = yield* start([where])
      const turn = yield* calls.start(request("where", { responses: { elicit_1: { roots: [bare] } } }), silent)
      assert.lengthOf(asked(turn).questions, 1)
    })
  )

  it.effect("M42: outside of a served call there is nobody to ask", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(ClientRequests.listRoots)
      assert.deepStrictEqual([failed._tag, failed.method], ["ClientRequestFailed", "roots/list"])
      assert.deepStrictEqual(
        (yield* Tool.run(colour, {})).output,
        `ClientRequestFailed sampling/createMessage: ${(yield* Effect.flip(ClientRequests.createMessage({}))).message}`
      )
    })
  )
})
