import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as Executor from "@agenttool/core/Executor"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"

const schema = {
  type: "object",
  properties: { n: { type: "integer", minimum: 1 }, s: { type: "string" } },
  required: ["n"],
  additionalProperties: false
}
const parameters = Schema.Struct({ n: Schema.Int, s: Schema.optionalKey(Schema.NonEmptyString) })

const ran: Array<string> = []
const ranning = (name: string) => Effect.sync(() => void ran.push(name))

const raw = Tool.raw("raw", { parameters: schema, execute: () => ranning("raw") })
const byHand = Tool.make("byHand", { parameters, jsonSchema: schema, execute: () => ranning("byHand") })
const generated = Tool.make("generated", { parameters, execute: () => ranning("generated") })

/** What a model reads of a call, however it is run. */
const words = (tool: Tool.Tool<unknown>, text: string) =>
  Effect.gen(function* () {
    const direct = yield* Effect.match(
      Tool.runCall(tool, ToolCall.make({ id: "c", tool: tool.name, arguments: text })),
      {
        onSuccess: () => "ran",
        onFailure: (failure) => ToolError.messageOf(failure)
      }
    )
    const outcome = yield* Executor.run([tool], [{ id: "c", name: tool.name, arguments: text }])
    const [inBatch] = Executor.outputs(outcome).map(({ output }) => output)
    assert.strictEqual(inBatch, direct === "ran" ? "" : `Error: ${direct}`)
    return direct
  })

describe("schemas that an author supplied", () => {
  it.effect("C191: are checked by what runs the tool, before it runs, in the words of a general validator", () =>
    Effect.gen(function* () {
      ran.length = 0
      for (const tool of [raw, byHand]) {
        assert.strictEqual(yield* words(tool, '{"n":0}'), "invalid arguments: n: must be >= 1")
        assert.match(yield* words(tool, "{}"), /^invalid arguments: .*required.*"?n"?/)
        assert.match(yield* words(tool, '{"n":1,"x":1}'), /^invalid arguments: .*additional/)
        assert.strictEqual(yield* words(tool, "[]"), "invalid arguments: expected a JSON object")
        assert.match(yield* words(tool, "{"), /^invalid arguments: not valid JSON: /)
        assert.deepStrictEqual(ran, [])
        assert.strictEqual(yield* words(tool, '{"n":1}'), "ran")
        assert.deepStrictEqual(ran.splice(0), [tool.name, tool.name])
      }
    })
  )

  it.effect("C191: a generated schema is checked by the tool itself, once, with its own words wherever it runs", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* words(generated, "{}"), 'invalid arguments: missing required property "n"')
      assert.strictEqual(yield* words(generated, '{"n":"1"}'), 'invalid arguments: n: expected integer, got "1"')
      // What runs it has nothing to check.
      const check = Result.getOrThrow(Tool.prepare(generated))
      assert.isTrue(check._tag === "Checked" && check.check({ n: "1" }) === undefined)
      const call = ToolCall.make({ id: "c", tool: "generated", arguments: '{"n":"1"}' })
      assert.isUndefined(Tool.faultOf(generated, call))
      assert.isDefined(Tool.faultOf(raw, call))
    })
  )

  it.effect("C197: the schema decides, and a tool that decodes may still refuse what the schema allows", () =>
    Effect.gen(function* () {
      ran.length = 0
      const text = '{"n":1,"s":""}'
      assert.strictEqual(yield* words(raw, text), "ran")
      assert.match(yield* words(byHand, text), /^invalid arguments: s: /)
      // And the other way round: the decoder would take it.
      assert.strictEqual(yield* words(generated, '{"n":0}'), "ran")
      assert.strictEqual(yield* words(byHand, '{"n":0}'), "invalid arguments: n: must be >= 1")
      assert.notInclude(ran, "byHand")
    })
  )

  it.effect("C191: a schema that cannot be resolved is a fault of every call, and of its preparation", () =>
    Effect.gen(function* () {
      const jsonSchema = { type: "object", properties: { a: { $ref: "#/$defs/nothing" } } }
      for (const tool of [
        Tool.raw("t", { parameters: jsonSchema, execute: () => ranning("t") }),
        Tool.make("t", { jsonSchema, execute: () => ranning("t") })
      ]) {
        ran.length = 0
        const prepared = Tool.prepare(tool)
        assert.isTrue(Result.isFailure(prepared))
        const reason = Result.isFailure(prepared) ? prepared.failure.message : ""
        assert.strictEqual(yield* words(tool, "{}"), `invalid arguments: ${reason}`)
        assert.deepStrictEqual(ran, [])
      }
    })
  )
})
