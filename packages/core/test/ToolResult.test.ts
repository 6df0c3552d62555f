import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as Part from "@agenttool/core/Part"
import * as Tool from "@agenttool/core/Tool"
import * as ToolResult from "@agenttool/core/ToolResult"

describe("ToolResult", () => {
  it("C94: a result has an output, details and terminate, and of the last two only what was given", () => {
    const details = { pid: 1 }
    const full = ToolResult.text("done", { details, terminate: true })
    assert.deepStrictEqual([full.output, full.details, full.terminate], ["done", details, true])
    assert.strictEqual(full.details, details)
    const plain = ToolResult.parts([Part.text("done")])
    assert.deepStrictEqual([plain.output, plain.details, plain.terminate], [[Part.text("done")], undefined, undefined])
    assert.isFalse("details" in plain || "terminate" in plain)
    const later = ToolResult.withDetails(full, "other")
    assert.deepStrictEqual([later.output, later.details, later.terminate], ["done", "other", true])
    assert.strictEqual(full.details, details)
  })

  it("C94: a result is told apart from what looks like one", () => {
    for (const result of [ToolResult.text(""), ToolResult.parts([]), ToolResult.structured({ a: 1 }, { a: 1 })]) {
      assert.isTrue(ToolResult.isToolResult(result))
      assert.isTrue(ToolResult.isToolResult({ ...result, output: "changed" }))
    }
    for (const other of [{ output: "x" }, [], "x", null, undefined, 1]) assert.isFalse(ToolResult.isToolResult(other))
  })

  it.effect(
    "C96: an empty list of parts is one, also after the tool has run, and no output at all is the empty text",
    () =>
      Effect.gen(function* () {
        const parts = Tool.make("parts", { execute: () => Effect.succeed(ToolResult.parts([])) })
        assert.deepStrictEqual((yield* Tool.run(parts, {})).output, [])
        for (const nothing of [undefined, null]) {
          const tool = Tool.make("nothing", { execute: () => Effect.succeed(nothing) })
          assert.strictEqual((yield* Tool.run(tool, {})).output, "")
          const raw = Tool.raw("nothing", { execute: () => Effect.succeed(nothing) })
          assert.strictEqual((yield* Tool.run(raw, {})).output, "")
        }
      })
  )

  it("C98: the text form is the text, or the texts of the textual parts with nothing between them", () => {
    assert.strictEqual(ToolResult.textOf(" a\n"), " a\n")
    const mixed = [Part.text("a"), Part.image("https://example.com/x.png"), { type: "output_text", text: "b" }]
    assert.strictEqual(ToolResult.textOf(mixed), "ab")
    const textual = ["input_text", "output_text", "text", "summary_text", "reasoning_text"]
    assert.strictEqual(ToolResult.textOf(textual.map((type) => ({ type, text: `${type} ` }))), `${textual.join(" ")} `)
    const others = [Part.refusal("no"), { type: "input_file", text: "x" }, { type: "text", text: 7 }, { type: "text" }]
    assert.strictEqual(ToolResult.textOf(others), "")
    assert.strictEqual(ToolResult.textOf([]), "")
  })

  it("C18: what has no JSON is a failure that says why, in one line", () => {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const throwing = {
      toJSON: () => {
        throw new Error("two\n  lines")
      }
    }
    for (const value of [cycle, 1n, () => 1, Symbol("s"), throwing, { toJSON: () => undefined }]) {
      const exit = ToolResult.from(value)
      assert.isTrue(Exit.isFailure(exit))
      const [reason] = Exit.isFailure(exit) ? exit.cause.reasons : []
      assert.match(reason?._tag === "Fail" ? reason.error.message : "", /^encode result: .+$/)
    }
  })
})
