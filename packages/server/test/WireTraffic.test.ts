/**
 * What really goes over the wire, message by message: kept in files beside this one, to be read and compared. Ids that are
 * made at random are masked. The examples of docs/contract/mcp.md are held to the byte.
 */
import { Elicitor, Part, Progress, Tool, ToolError, ToolRecord, ToolResult } from "@agenttool/core"
import { Wire } from "@agenttool/server"
import { connect } from "@agenttool/server/testing"
import { assert, describe, expect, it } from "@effect/vitest"
import type { ElicitResult } from "@modelcontextprotocol/client"
import { Effect, Schema } from "effect"
import { eras } from "./hosts.ts"

// ----- the tools of the contract's examples

const bash = Tool.raw("bash", {
  description: "Run a command",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  execute: ({ arguments: text }) =>
    Effect.succeed(
      ToolResult.text(text, { details: ToolRecord.make("shell:run", { pid: 4242, big: "9007199254740993" }) })
    )
}).pipe(
  Tool.resource("shell:session"),
  Tool.facts((args) =>
    Effect.succeed({
      calls:
        JSON.stringify(args) === '{"command":"cat .env > out/x"}'
          ? [
              { tool: "read", args: { path: ".env" }, text: "read .env" },
              { tool: "write", args: { path: "out/x" } }
            ]
          : []
    })
  )
)

const deploy = Tool.make("deploy", {
  description: "Deploys a build",
  parameters: Schema.Struct({ build: Schema.String, dry: Schema.optionalKey(Schema.Boolean) }),
  success: Schema.Struct({ deployed: Schema.Boolean, where: Schema.String }),
  execute: Effect.fn(function* ({ build }) {
    yield* Progress.report({ progress: 1, total: 3, message: `checking ${build}` })
    const sure = yield* Elicitor.ask({
      message: "deploy to production?",
      schema: Schema.Struct({ confirm: Schema.Boolean })
    })
    const paid = yield* Elicitor.ask({ message: "pay first", url: "https://example.com/pay" })
    yield* Progress.report("done")
    return { deployed: sure.action === "accept" && paid.action === "accept", where: "production" }
  })
}).pipe(
  Tool.sequential,
  Tool.annotate({ title: "Deploy", destructive: true, openWorld: true }),
  Tool.flow({ sends: true })
)

const draw = Tool.make("draw", {
  execute: () =>
    Effect.succeed(
      ToolResult.parts([
        Part.text("a cat"),
        Part.image("data:image/png;base64,AQID"),
        Part.file({ filename: "notes.txt", data: "AQID" })
      ])
    )
}).pipe(Tool.barrier, Tool.annotate({ readOnly: true }))

const fail = Tool.make("fail", {
  execute: () =>
    Effect.fail(
      new ToolError.ToolFailure({ message: "disk on fire", details: ToolRecord.make("disk", { smoke: true }) })
    )
})

const die = Tool.make("die", { execute: () => Effect.die(new Error("secret")) })

const answers: ReadonlyArray<ElicitResult> = [{ action: "accept", content: { confirm: true } }, { action: "accept" }]

// ----- what is written down

const masked = (json: string): string =>
  json
    .replaceAll(/"requestState":"[0-9a-f]{64}"/g, '"requestState":"STATE"')
    .replaceAll(/"elicitationId":"[0-9a-f]{32}"/g, '"elicitationId":"ID"')
    .replaceAll(/unexpectedly \([0-9a-f]{8}\)/g, "unexpectedly (REF)")

const Answers = Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Unknown) }))

for (const protocolVersion of eras) {
  const traffic = Effect.gen(function* () {
    const mcp = yield* connect({ tools: [bash, deploy, draw, fail, die], protocolVersion, answers })
    const call = (name: string, args: Record<string, unknown> = {}, onprogress?: () => void) =>
      Effect.exit(
        Effect.tryPromise(() =>
          mcp.client.callTool({ name, arguments: args }, onprogress === undefined ? {} : { onprogress })
        )
      )
    yield* Effect.promise(() => mcp.client.listTools())
    yield* call("bash", { command: "ls" })
    yield* call("deploy", { build: "b1" }, () => {})
    yield* call("draw")
    yield* call("fail")
    yield* call("die")
    yield* call("bash", {})
    yield* call("deploy", { build: 7 })
    yield* call("nothing")
    yield* Effect.promise(() =>
      mcp.client.request(
        {
          method: Wire.factsMethod,
          params: {
            calls: [
              { name: "missing" },
              { name: "bash", arguments: { command: "cat .env > out/x" } },
              { name: "deploy" }
            ]
          }
        },
        Answers
      )
    )
    return yield* mcp.messages
  })

  describe(`${protocolVersion}: the wire`, () => {
    it.effect("M12, M30, M36, M52, M70, M75: carries what its file shows", () =>
      Effect.gen(function* () {
        const lines = (yield* traffic).map(
          ({ from, message }) => `${from === "client" ? "→" : "←"} ${masked(JSON.stringify(message))}`
        )
        yield* Effect.promise(() =>
          expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(`./snapshots/traffic-${protocolVersion}.txt`)
        )
      })
    )

    it.effect("M17, M20: has definitions as the contract writes them, members in its order", () =>
      Effect.gen(function* () {
        const [listed] = (yield* traffic).flatMap(({ message }) =>
          "result" in message && "tools" in message.result ? [message.result.tools as ReadonlyArray<unknown>] : []
        )
        assert.strictEqual(
          JSON.stringify(listed?.[0]),
          '{"name":"bash","description":"Run a command","inputSchema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]},' +
            '"_meta":{"io.github.christopherdavenport.agenttool/tool":{"facts":true,"replay":true,"resource":"shell:session"}}}'
        )
      })
    )

    it.effect("M36, M37: has records as text beside the content", () =>
      Effect.gen(function* () {
        const results = (yield* traffic).flatMap(({ message }) =>
          "result" in message && "content" in message.result ? [JSON.stringify(message.result)] : []
        )
        const [bashResult] = results
        assert.include(
          bashResult,
          '"io.github.christopherdavenport.agenttool/record":{"ns":"shell:run","data":"{\\"pid\\":4242,\\"big\\":\\"9007199254740993\\"}"}'
        )
        assert.isTrue(
          results.some(
            (result) =>
              result.includes('"isError":true') &&
              result.includes(
                '"io.github.christopherdavenport.agenttool/record":{"ns":"disk","data":"{\\"smoke\\":true}"}'
              )
          )
        )
      })
    )

    it.effect("M76, M77, M82, M83: has facts as the contract's example has them", () =>
      Effect.gen(function* () {
        const messages = yield* traffic
        const [answered] = messages.flatMap(({ message }) =>
          "result" in message && "results" in message.result ? [message.result.results] : []
        )
        assert.strictEqual(
          JSON.stringify(answered),
          '[{"error":"unknown tool \\"missing\\"","replay":"unknown"},' +
            '{"facts":{"calls":[{"tool":"read","args":{"path":".env"},"text":"read .env"},{"tool":"write","args":{"path":"out/x"}}]},"replay":"unknown"},' +
            '{"replay":"unknown"}]'
        )
        const [capabilities] = messages.flatMap(({ message }) =>
          "result" in message && "capabilities" in message.result ? [message.result.capabilities] : []
        )
        assert.strictEqual(
          JSON.stringify(capabilities),
          '{"tools":{"listChanged":true},"experimental":{"io.github.christopherdavenport.agenttool/facts":{}}}'
        )
      })
    )
  })
}

describe("2026-07-28: a round", () => {
  it.effect("M48, M52: is as the contract's example has it", () =>
    Effect.gen(function* () {
      const ask = Tool.make("ask", {
        execute: () =>
          Elicitor.askRaw({
            message: "deploy to production?",
            schema: { type: "object", properties: { confirm: { type: "boolean" } }, required: ["confirm"] }
          })
      })
      const mcp = yield* connect({ tools: [ask], answers })
      yield* mcp.text("ask")
      const messages = yield* mcp.messages
      const [round] = messages.flatMap(({ message }) =>
        "result" in message && message.result.resultType === "input_required" ? [message.result] : []
      )
      const { _meta, ...own } = round ?? {}
      assert.strictEqual(
        masked(JSON.stringify(own)),
        '{"resultType":"input_required",' +
          '"inputRequests":{"elicit_1":{"method":"elicitation/create","params":{"mode":"form","message":"deploy to production?",' +
          '"requestedSchema":{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}}}},' +
          '"requestState":"STATE"}'
      )
      const [resume] = messages.flatMap(({ message }) =>
        "method" in message && message.params !== undefined && "requestState" in message.params ? [message.params] : []
      )
      assert.deepStrictEqual(resume?.inputResponses, { elicit_1: { action: "accept", content: { confirm: true } } })
      assert.strictEqual(resume?.requestState, round?.requestState)
    })
  )
})
