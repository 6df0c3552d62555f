import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import * as Question from "@agenttool/core/Question"

const read = (raw: unknown, check?: (content: unknown) => string | undefined): unknown =>
  Result.match(Question.checkAnswer(raw, check), { onFailure: (error) => error.message, onSuccess: (answer) => answer })

const fitsNothing = () => "b: must be string"
const fits = () => undefined

describe("Question", () => {
  it("C120: a url that is not empty makes a url question, a schema a form, neither a confirmation", () => {
    const schema = { type: "object", properties: {} }
    assert.strictEqual(Question.kindOf({ message: "m", url: "https://example.com", schema }), "url")
    assert.strictEqual(Question.kindOf({ message: "m", url: "", schema }), "form")
    assert.strictEqual(Question.kindOf({ message: "m", schema }), "form")
    assert.strictEqual(Question.kindOf({ message: "m", url: "" }), "confirmation")
    assert.strictEqual(Question.kindOf({ message: "m" }), "confirmation")
  })

  it("C126: accepted content is taken when it fits, and fails the asking with the validator's words when not", () => {
    assert.deepStrictEqual(read({ action: "accept", content: { b: "x" } }, fits), Question.accept({ b: "x" }))
    assert.strictEqual(
      read({ action: "accept", content: { b: 1 } }, fitsNothing),
      "elicitation answer: b: must be string"
    )
  })

  it("C126: accepted without content is taken as it is, whatever the form requires", () => {
    for (const raw of [
      { action: "accept" },
      { action: "accept", content: undefined },
      { action: "accept", content: null }
    ]) {
      assert.deepStrictEqual(read(raw, fitsNothing), Question.accept(undefined))
    }
  })

  it("C126: the content of a refusal is dropped", () => {
    assert.deepStrictEqual(read({ action: "decline", content: { b: 1 } }, fitsNothing), { action: "decline" })
    assert.deepStrictEqual(read({ action: "cancel", content: { b: 1 }, _meta: {} }, fitsNothing), { action: "cancel" })
  })

  it("C126: without a schema any content is taken, as long as it is an object", () => {
    assert.deepStrictEqual(read({ action: "accept", content: { any: [1] } }), Question.accept({ any: [1] }))
    assert.strictEqual(read({ action: "accept", content: ["x"] }), "elicitation answer: must be object")
    assert.strictEqual(read({ action: "accept", content: "x" }), "elicitation answer: must be object")
  })

  it("C126: an unknown action fails the asking, and is named", () => {
    assert.strictEqual(read({ action: "maybe" }), 'elicitation answer: unknown action "maybe"')
    assert.strictEqual(read({ action: "ACCEPT" }), 'elicitation answer: unknown action "ACCEPT"')
    assert.strictEqual(read({ action: 5 }), "elicitation answer: unknown action 5")
    assert.strictEqual(read({ action: {} }), "elicitation answer: unknown action of type object")
    assert.strictEqual(read({ action: 'a"\nb' }), 'elicitation answer: unknown action "a\\" b"')
    assert.isBelow(String(read({ action: "x".repeat(1_000_000) })).length, 200)
  })

  it("an answer of another kind fails the asking, and says which kind", () => {
    const kind = (raw: unknown) => String(read(raw)).replace("elicitation answer: the client answered with ", "")
    assert.strictEqual(kind({ roots: [] }), "a roots result")
    assert.strictEqual(
      kind({ role: "assistant", content: { type: "text", text: "" }, model: "m" }),
      "a sampling result"
    )
    assert.strictEqual(kind({}), "an object without an action")
    assert.strictEqual(kind("accept"), "a string")
    assert.strictEqual(kind(1), "a number")
    assert.strictEqual(kind(["accept"]), "an array")
    assert.strictEqual(kind(null), "null")
    assert.strictEqual(kind(undefined), "nothing")
  })

  it.prop(
    "C126: whatever comes back is one of the three answers or one short line",
    { raw: Arbitrary.schema(Schema.Json) },
    ({ raw }) => {
      for (const value of [raw, { action: raw }, { action: "accept", content: raw }]) {
        const answer = read(value)
        if (typeof answer === "string") assert.match(answer, /^elicitation answer: [^\n]{1,300}$/)
        else assert.include(["accept", "decline", "cancel"], (answer as Question.Answer).action)
      }
    }
  )
})
