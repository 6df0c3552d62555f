import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Exit, Schema } from "effect"
import * as Executor from "@agenttool/core/Executor"
import * as Tool from "@agenttool/core/Tool"
import * as ToolError from "@agenttool/core/ToolError"

class Plain extends Schema.TaggedError<Plain>()("Plain", { city: Schema.String }) {}
class Small extends Data.TaggedError("Small")<{ readonly code: number }> {}
class Nameless extends Error {
  override readonly name = ""
}

const unreadable = Object.create(null)
unreadable.self = unreadable

describe("ToolError", () => {
  it.effect.each<readonly [string, unknown, string]>([
    ["a text", "plain words", "plain words"],
    ["an empty text", "", ""],
    ["an error", new Error("no such user"), "no such user"],
    ["a value with a message", { message: "own", code: 1 }, "own"],
    ["an error without a message", new Error(""), "Error"],
    ["an error of a kind, without a message", new RangeError(""), "RangeError"],
    ["an error with neither", new Nameless(""), "Error"],
    ["a tagged error without a message", new Plain({ city: "Atlantis" }), "Plain"],
    ["a light tagged error without a message", new Small({ code: 1 }), "Small"],
    ["a failure that says nothing", new ToolError.ToolFailure({ message: "" }), "the tool failed without saying why"],
    ["a value", { code: 4 }, '{"code":4}'],
    ["a value whose message is empty", { message: "", code: 4 }, '{"message":"","code":4}'],
    ["a value whose message is no text", { message: 1 }, '{"message":1}'],
    ["nothing", undefined, "undefined"],
    ["null", null, "null"],
    ["a bigint", 10n, "10"],
    ["a value without JSON and without a text", unreadable, "a value without a text"]
  ])("C103: what a model reads of %s", ([, failure, text]) =>
    Effect.gen(function* () {
      assert.strictEqual(ToolError.messageOf(failure), text)
      const tool = Tool.raw("t", { execute: () => Effect.fail(failure) })
      const outcome = yield* Executor.run([tool], [{ id: "c", name: "t" }])
      assert.deepStrictEqual(
        Executor.outputs(outcome).map(({ output }) => output),
        [`Error: ${text}`]
      )
    })
  )

  it.effect("C105: the value of a defect is a message, a name where that is empty, else a text, in one line", () =>
    Effect.gen(function* () {
      const values: ReadonlyArray<readonly [unknown, string]> = [
        [new Error("a \r\n\t b"), "a b"],
        [new TypeError(""), "TypeError"],
        ["oh no", "oh no"],
        [{ a: 1 }, '{"a":1}'],
        [unreadable, "a value without a text"],
        [undefined, "undefined"]
      ]
      for (const [value, text] of values) {
        const exit = yield* Effect.exit(Tool.run(Tool.raw('a "b"', { execute: () => Effect.die(value) }), {}))
        const [reason] = Exit.isFailure(exit) ? exit.cause.reasons : []
        const defect = reason?._tag === "Die" ? reason.defect : undefined
        assert.instanceOf(defect, ToolError.ToolDefect)
        assert.strictEqual(defect.message, `tool "a \\"b\\"" panicked: ${text}`)
        assert.strictEqual(defect.cause, value)
      }
    })
  )

  it("C101: the details of any failure and its wish to stop are read, and only true is that wish", () => {
    const failure = new ToolError.ToolFailure({ message: "no", details: { free: 0 }, terminate: true })
    assert.deepStrictEqual([ToolError.detailsOf(failure), ToolError.terminateOf(failure)], [{ free: 0 }, true])
    assert.deepStrictEqual(
      [ToolError.detailsOf({ details: 1 }), ToolError.terminateOf({ terminate: "yes" })],
      [1, false]
    )
    for (const other of ["no", undefined, null, new Error("no")]) {
      assert.deepStrictEqual([ToolError.detailsOf(other), ToolError.terminateOf(other)], [undefined, false])
    }
  })

  it.effect("C107: a failure of a declared schema keeps its message, or is the JSON of that schema", () =>
    Effect.gen(function* () {
      const Quota = Schema.Struct({ until: Schema.DateFromString })
      const limited = Tool.make("limited", { failure: Quota, execute: () => Effect.fail({ until: new Date(0) }) })
      const failure = yield* Effect.flip(Tool.run(limited, {}))
      assert.strictEqual(Tool.failureText(limited, failure), '{"until":"1970-01-01T00:00:00.000Z"}')
      assert.strictEqual(Tool.failureText(limited, { message: "own" }), "own")
      // What is not of that schema, such as a failure of the arguments.
      const refused = new ToolError.InvalidArguments({ path: "a", detail: "b" })
      assert.strictEqual(Tool.failureText(limited, refused), "invalid arguments: a: b")
      assert.strictEqual(Tool.failureText(limited, new Error("")), "Error")
    })
  )
})
