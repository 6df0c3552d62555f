import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Result, Schema, SchemaTransformation } from "effect"
import { names, readings, rows, type Subject } from "./properties.ts"
import * as Plan from "@agenttool/core/Plan"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"
import type * as ToolResult from "@agenttool/core/ToolResult"
import * as Toolbox from "@agenttool/core/Toolbox"

const callOf = (tool: Tool.Any, text?: string) => ToolCall.make({ id: "c", tool: tool.name, arguments: text })

/** The output of a call with this text, or the words of its failure. */
const run = (tool: Tool.Tool<unknown>, text?: string) => told(Tool.runCall(tool, callOf(tool, text)))

/** The same of the tool alone, without what whoever runs it does before. */
const alone = (tool: Tool.Tool<unknown>, text: string) => told(tool.execute(callOf(tool, text)))

const told = (running: Effect.Effect<ToolResult.ToolResult, unknown>) =>
  Effect.match(running, {
    onSuccess: ({ output }) => output,
    onFailure: (failure) => ToolError.messageOf(failure)
  })

const buildError = (build: () => unknown): string =>
  Result.match(Result.try(build), {
    onFailure: (error) => (error instanceof ToolError.ToolBuildError ? error.message : "another error"),
    onSuccess: () => "built"
  })

describe("a tool", () => {
  it.effect("C1: a name, a description, no parameters and a function are a finished tool that states nothing", () =>
    Effect.gen(function* () {
      const tools = [
        Tool.raw("bare", { execute: () => Effect.succeed("done") }),
        Tool.make("bare", { description: "", execute: () => Effect.succeed("done") })
      ]
      for (const tool of tools) {
        assert.deepStrictEqual([tool.name, tool.description, tool.parameters], ["bare", "", undefined])
        assert.strictEqual((yield* Tool.run(tool, {})).output, "done")
        assert.deepStrictEqual(
          yield* readings(tool),
          Object.fromEntries(names.map((name) => [name, rows[name].fallback]))
        )
      }
      // It may run beside anything.
      assert.deepStrictEqual(Plan.segments([...tools, ...tools]), [[[0], [1], [2], [3]]])
      yield* Toolbox.close(tools)
    })
  )

  it.effect("C2: a name is any text that is not empty, and the empty one is refused by the check of a set", () =>
    Effect.gen(function* () {
      for (const name of ["read file", 'a\n"b"', "Ünïcode 🙂", "x".repeat(500), " ", "__proto__"]) {
        const tool = Tool.make(name, { execute: () => Effect.map(ToolCall.current, (call) => call.tool) })
        assert.strictEqual((yield* Tool.run(tool, {})).output, name)
        assert.strictEqual(Tool.definition(tool).name, name)
        assert.isTrue(Option.isSome(Toolbox.get(yield* Toolbox.make(tool), name)))
      }
      const nameless = Tool.raw("", { execute: () => Effect.void })
      assert.strictEqual((yield* Effect.flip(Toolbox.make(nameless))).message, "tool[0]: empty name")
    })
  )

  it.effect("C6: a tool without arguments is called with an arguments object all the same", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const typed = Tool.make("typed", { execute: (given) => Effect.sync(() => void seen.push(given)) })
      const raw = Tool.raw("raw", { execute: (call) => Effect.sync(() => void seen.push(call.arguments)) })
      for (const text of [undefined, "", "{}"]) {
        yield* run(typed, text)
        yield* run(raw, text)
      }
      assert.deepStrictEqual(seen, [{}, "{}", {}, "{}", {}, "{}"])
      for (const text of ["null", "[]", '""', "0"]) {
        assert.match(String(yield* run(typed, text)), /^invalid arguments: expected (a JSON )?object/)
        assert.match(String(yield* run(raw, text)), /^invalid arguments: expected (a JSON )?object/)
      }
      assert.lengthOf(seen, 6)
    })
  )

  it("C10: a typed tool that asks for strict keeps the strict rules, a supplied schema is nobody's to check", () => {
    const parameters = Schema.Struct({ a: Schema.String, inner: Schema.optionalKey(Schema.Struct({ b: Schema.Int })) })
    const typed = Tool.strict(Tool.make("t", { parameters, execute: () => Effect.void }))
    assert.deepStrictEqual(Tool.definition(typed), {
      type: "function",
      name: "t",
      description: "",
      parameters: {
        type: "object",
        properties: {
          a: { type: "string" },
          inner: {
            type: "object",
            properties: { b: { type: "integer" } },
            required: ["b"],
            additionalProperties: false
          }
        },
        required: ["a", "inner"],
        additionalProperties: false
      },
      strict: true
    })
    const loose = { properties: { a: { additionalProperties: true } } }
    for (const supplied of [
      Tool.raw("t", { parameters: loose, execute: () => Effect.void }),
      Tool.make("t", { parameters, jsonSchema: loose, execute: () => Effect.void })
    ]) {
      assert.strictEqual(Tool.strict(supplied).parameters, loose)
      assert.isTrue(Tool.definition(Tool.strict(supplied)).strict)
    }
    const map = Tool.make("t", {
      parameters: Schema.Struct({ tags: Schema.Record(Schema.String, Schema.String) }),
      execute: () => Effect.void
    })
    assert.strictEqual(
      buildError(() => Tool.strict(map)),
      'agenttool: Tool.make("t"): tags: maps cannot be expressed in a strict schema'
    )
  })
})

describe("the ways to build a tool", () => {
  const parameters = Schema.Struct({ at: Schema.DateFromString, n: Schema.Int.check(Schema.isGreaterThan(0)) })
  const execute = ({ at, n }: typeof parameters.Type) => Effect.succeed(`${at.getUTCFullYear()} ${n}`)
  const jsonSchema = { type: "object", properties: { n: { enum: [1, 2] } }, required: ["at"] }

  const generated = {
    type: "object",
    properties: { at: { type: "string", format: "date-time" }, n: { type: "integer", exclusiveMinimum: 0 } },
    required: ["at", "n"]
  }
  const good = '{"at":"2026-07-28T00:00:00.000Z","n":1}'

  it.effect("C16: typed: the schema is generated, the tool checks against it, and decodes", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", { parameters, execute })
      assert.deepStrictEqual(tool.parameters, generated)
      assert.strictEqual(yield* alone(tool, good), "2026 1")
      assert.strictEqual(yield* alone(tool, '{"at":1,"n":1}'), "invalid arguments: at: expected string, got 1")
      assert.match(String(yield* alone(tool, '{"at":"soon","n":1}')), /^invalid arguments: at: /)
      assert.match(String(yield* alone(tool, good.replace("1}", "0}"))), /^invalid arguments: n: /)
    })
  )

  it.effect("C16, C173: a schema by hand is shown as it is, also under strict, and the tool only decodes", () =>
    Effect.gen(function* () {
      const made = Tool.make("t", { parameters, jsonSchema, execute })
      for (const tool of [made, Tool.strict(made), Tool.strict(Tool.wrap(made, (execute) => execute))]) {
        assert.strictEqual(tool.parameters, jsonSchema)
        assert.strictEqual(Tool.definition(tool).parameters, jsonSchema)
        // 3 is not in the schema by hand, and a member too many is refused under strict only by what the tool generates.
        assert.strictEqual(yield* alone(tool, good.replace("1}", '3,"more":1}')), "2026 3")
        assert.match(String(yield* alone(tool, '{"at":"2026-07-28T00:00:00.000Z","n":"1"}')), /^invalid arguments: n: /)
        assert.strictEqual(yield* alone(tool, "[]"), "invalid arguments: expected a JSON object")
      }
    })
  )

  it.effect("C16: with the check switched off the decoder is the only guard, in the tool and around it", () =>
    Effect.gen(function* () {
      const off = Tool.make("t", { parameters, execute, check: false })
      assert.deepStrictEqual(off.parameters, generated)
      const byHand = Tool.make("t", { parameters, jsonSchema, execute, check: false })
      assert.strictEqual(byHand.parameters, jsonSchema)
      for (const tool of [off, byHand]) {
        assert.strictEqual(yield* run(tool, good), "2026 1")
        const words = String(yield* run(tool, '{"at":1,"n":1}'))
        assert.match(words, /^invalid arguments: at: /)
        assert.notInclude(words, "got 1")
      }
      assert.strictEqual(yield* run(byHand, good.replace("1}", "3}")), "2026 3")
    })
  )

  it.effect("C16: raw: the schema byte for byte, or none, and the function gets the call as it is", () =>
    Effect.gen(function* () {
      const text = '{ "n" : 1.50, "at":"x" }'
      const call = ToolCall.make({ id: "call_7", tool: "other", arguments: text, idempotencyKey: "k" })
      const seen: Array<ToolCall.Call> = []
      const tool = Tool.raw("t", {
        parameters: jsonSchema,
        execute: (given) => Effect.sync(() => void seen.push(given))
      })
      assert.strictEqual(tool.parameters, jsonSchema)
      yield* tool.execute(call)
      assert.strictEqual(seen[0], call)
      assert.isUndefined(Tool.raw("t", { execute: () => Effect.void }).parameters)
    })
  )

  it.effect("C19: every property can be set on a typed tool and on a raw one", () =>
    Effect.gen(function* () {
      const kinds: ReadonlyArray<Subject> = [
        Tool.make("t", { parameters, execute }),
        Tool.raw("t", { execute: () => Effect.void })
      ]
      for (const tool of kinds) {
        for (const name of names) {
          const { given, read, set } = rows[name]
          assert.deepStrictEqual(yield* read(set(tool), '{"a": 1}'), given, name)
        }
      }
    })
  )

  it.effect("C19: a schema by hand and the switch of the check are no options of a raw tool", () =>
    Effect.gen(function* () {
      const options = { parameters: jsonSchema, execute: () => Effect.succeed("ran"), check: false, jsonSchema: {} }
      const tool = Tool.raw("t", options)
      assert.strictEqual(tool.parameters, jsonSchema)
      assert.match(String(yield* run(tool, "{}")), /^invalid arguments: .*required/)
    })
  )

  it("C17: a fault of the success schema is named by its place in it", () => {
    const paths: ReadonlyArray<readonly [Schema.Codec<unknown, unknown>, string]> = [
      [Schema.Tuple([Schema.String]), "success"],
      [Schema.Array(Schema.Tuple([Schema.String])), "success[]"],
      [Schema.Record(Schema.String, Schema.Tuple([Schema.String])), "success{}"],
      [Schema.Struct({ list: Schema.Array(Schema.Tuple([Schema.String])) }), "success.list[]"],
      [Schema.Array(Schema.Struct({ a: Schema.Tuple([Schema.String]) })), "success[].a"]
    ]
    for (const [success, path] of paths) {
      assert.strictEqual(
        buildError(() => Tool.make("t", { success, execute: () => Effect.succeed(undefined) })),
        `agenttool: Tool.make("t"): ${path}: unsupported type: a tuple`
      )
    }
  })
})

describe("a call of a typed tool", () => {
  const order: Array<string> = []
  const Watched = Schema.String.pipe(
    Schema.decodeTo(
      Schema.String,
      SchemaTransformation.transform({
        decode: (text) => {
          order.push("decode")
          return text
        },
        encode: (text) => text
      })
    )
  )
  const tool = Tool.make("t", {
    parameters: Schema.Struct({ a: Watched.check(Schema.isMinCodePoints(2)), z: Schema.Int }),
    execute: ({ a }) =>
      Effect.sync(() => {
        order.push("run")
        return `ran ${a}`
      })
  })

  it.effect("C177: the text is parsed, held against the schema, decoded, and then the function runs", () =>
    Effect.gen(function* () {
      const steps: ReadonlyArray<readonly [string, RegExp, ReadonlyArray<string>]> = [
        // Each has every later fault as well.
        ['{"a":"x","z":"y"', /^invalid arguments: not valid JSON: /, []],
        ['{"a":"x","z":"y"}', /^invalid arguments: z: expected integer, got "y"$/, []],
        ['{"a":"x","z":1}', /^invalid arguments: a: (?!expected string)/, ["decode"]],
        ['{"a":"xy","z":1}', /^ran xy$/, ["decode", "run"]]
      ]
      for (const [text, words, done] of steps) {
        order.length = 0
        assert.match(String(yield* run(tool, text)), words)
        assert.deepStrictEqual(order, done)
      }
    })
  )
})
