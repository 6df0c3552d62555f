import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import * as Executor from "@agenttool/core/Executor"
import * as Part from "@agenttool/core/Part"
import * as Tool from "@agenttool/core/Tool"
import * as ToolResult from "@agenttool/core/ToolResult"

describe("Part", () => {
  it.each<readonly [string, Part.Part, string]>([
    ["text", Part.text("a"), '{"type":"input_text","text":"a"}'],
    ["refusal", Part.refusal("no"), '{"type":"refusal","refusal":"no"}'],
    [
      "image",
      Part.image("https://example.com/x.png"),
      '{"type":"input_image","image_url":"https://example.com/x.png","detail":"auto"}'
    ],
    ["image with detail", Part.image("u", { detail: "low" }), '{"type":"input_image","image_url":"u","detail":"low"}'],
    [
      "imageData",
      Part.imageData("image/png", "AQID"),
      '{"type":"input_image","image_url":"data:image/png;base64,AQID","detail":"auto"}'
    ],
    [
      "file with data",
      Part.file({ filename: "a.txt", data: "YQ==" }),
      '{"type":"input_file","filename":"a.txt","file_data":"YQ=="}'
    ],
    [
      "file with url",
      Part.file({ url: "https://example.com" }),
      '{"type":"input_file","file_url":"https://example.com"}'
    ],
    ["audio", Part.audio("audio/wav", "YQ=="), '{"type":"input_file","file_data":"data:audio/wav;base64,YQ=="}']
  ])("C97: %s is the part of Open Responses, member by member", (_name, part, json) => {
    assert.strictEqual(JSON.stringify(part), json)
  })

  it.effect("C97: a part of a type that is not known is kept and sent on as it came", () =>
    Effect.gen(function* () {
      const odd: Part.Part = { type: "hologram", depth: 3, nested: { text: "not shown" } }
      const file: Part.Part = { type: "input_file", file_id: "f1", more: [1] }
      const tool = Tool.make("t", { execute: () => Effect.succeed(ToolResult.parts([odd, file])) })
      const outcome = yield* Executor.run([tool], [{ id: "c1", name: "t" }])
      const [item] = Executor.outputs(outcome)
      assert.deepStrictEqual(item?.output, [odd, file])
      assert.strictEqual(item?.output[0], odd)
      assert.strictEqual(ToolResult.textOf(item?.output ?? ""), "")
    })
  )

  it("C97: the schema of a part takes any object with a type, and nothing else", () => {
    const decode = Schema.decodeUnknownExit(Part.Part)
    const odd = { type: "hologram", depth: 3 }
    const taken = decode(odd)
    assert.isTrue(Exit.isSuccess(taken) && taken.value === odd)
    for (const other of [{}, { type: 1 }, null, "input_text", []]) assert.isTrue(Exit.isFailure(decode(other)))
  })

  it("C98: a part is textual by its type, if it has a text", () => {
    assert.isTrue(Part.isText(Part.text("")))
    assert.isTrue(Part.isText({ type: "reasoning_text", text: "x" }))
    for (const part of [Part.refusal("x"), { type: "text" }, { type: "text", text: 1 }, { type: "other", text: "x" }]) {
      assert.isFalse(Part.isText(part))
    }
  })
})
