/** Faults that people met in other servers, of the kind that a tool's schema decides. */
import { Tool } from "@agenttool/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const Address = Schema.Struct({ street: Schema.String, city: Schema.String }).annotate({ identifier: "Address" })
const Level = Schema.Literals(["low", "high"]).annotate({ identifier: "Level" })

class Person extends Schema.Class<Person>("Person")({ name: Schema.String, home: Address }) {}

const execute = () => Effect.succeed("")

describe("field cases", () => {
  it("S-09: a type that is used twice is written out twice, without a reference", () => {
    const tools = [
      Tool.make("struct", { parameters: Schema.Struct({ from: Address, to: Address }), execute }),
      Tool.make("enum", { parameters: Schema.Struct({ first: Level, second: Level }), execute }),
      Tool.make("list", { parameters: Schema.Struct({ all: Schema.Array(Address), one: Address }), execute }),
      Tool.make("class", { parameters: Schema.Struct({ a: Person, b: Schema.optionalKey(Person) }), execute }),
      Tool.make("strict", { parameters: Schema.Struct({ from: Address, to: Address }), execute }).pipe(Tool.strict),
      Tool.make("success", { success: Schema.Struct({ from: Address, to: Address }), execute: () => Effect.never })
    ]
    for (const tool of tools) {
      const text = JSON.stringify([Tool.definition(tool), tool.success])
      assert.notInclude(text, "$ref", tool.name)
      assert.notInclude(text, "$defs", tool.name)
      assert.notInclude(text, "definitions", tool.name)
    }
    const [struct] = tools
    const written = {
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
      required: ["street", "city"]
    }
    assert.deepStrictEqual(struct?.parameters?.properties, { from: written, to: written })
  })

  it("S-10: parameters that are no object are refused where the tool is built, by name", () => {
    const one = Schema.Struct({ a: Schema.String })
    const two = Schema.Struct({ b: Schema.String })
    const roots = [
      Schema.Union([one, two]),
      Schema.String,
      Schema.Array(one),
      Schema.Record(Schema.String, one),
      Schema.NullOr(one)
    ]
    for (const parameters of roots) {
      assert.throws(
        () => Tool.make("pay", { parameters, execute }),
        /"pay".*arguments must be an object|"pay".*unsupported/
      )
    }
    // Its author's word: a schema that was written by hand is shown as it is.
    const byHand = { type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] }
    assert.strictEqual(Tool.inputSchema(Tool.raw("pay", { parameters: byHand, execute })), byHand)
  })

  it("C17: bare fields in the place of a schema are refused with what to do", () => {
    const fields = { a: Schema.Int }
    assert.throws(
      // @ts-expect-error: the habit of another library
      () => Tool.make("bare", { parameters: fields, execute }),
      /"bare".*wrap the fields in Schema\.Struct/
    )
  })
})
