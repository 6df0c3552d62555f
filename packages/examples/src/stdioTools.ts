/** The three tools of the stdio example: a text, a value with a schema, an image. */
import { Part, Tool, ToolResult } from "@agenttool/core"
import { Effect, Schema } from "effect"

export const upper = Tool.make("upper", {
  description: "Uppercase a string",
  parameters: Schema.Struct({
    text: Schema.String.annotate({ description: "Text to uppercase" })
  }),
  execute: ({ text }) => Effect.succeed(text.toUpperCase())
})

export const add = Tool.make("add", {
  description: "Add two integers",
  parameters: Schema.Struct({
    a: Schema.Int.annotate({ description: "First addend" }),
    b: Schema.Int.annotate({ description: "Second addend" })
  }),
  execute: ({ a, b }) => Effect.succeed({ sum: a + b })
}).pipe(Tool.strict)

const transparentPixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

export const tinyImage = Tool.make("tiny_image", {
  description: "Return a 1x1 PNG",
  execute: () => Effect.succeed(ToolResult.parts([Part.imageData("image/png", transparentPixel)]))
})
