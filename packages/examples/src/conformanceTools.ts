/**
 * The tools that the official conformance suite calls, but for those that ask: what a result may hold, progress, a schema
 * that reaches the client unchanged, an argument that is repeated as a header, a list of tools that changes.
 */
import { Part, Progress, Tool, ToolResult } from "@agenttool/core"
import { ClientRequests, McpServer } from "@agenttool/server"
import { Effect, Layer, Schema } from "effect"

// ----- content

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// A WAV file without a single sample.
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

/** A file at an address of its own, which goes to the client as an embedded resource. */
const resource = (url: string, mimeType: string, content: string) =>
  Part.file({ url, data: `data:${mimeType};base64,${Buffer.from(content).toString("base64")}` })

const simpleText = Tool.make("test_simple_text", {
  description: "Gives a text",
  execute: () => Effect.succeed("This is a simple text.")
})

const imageContent = Tool.make("test_image_content", {
  description: "Gives an image",
  execute: () => Effect.succeed(ToolResult.parts([Part.imageData("image/png", pixel)]))
})

const audioContent = Tool.make("test_audio_content", {
  description: "Gives sound",
  execute: () => Effect.succeed(ToolResult.parts([Part.audio("audio/wav", silence)]))
})

const embeddedResource = Tool.make("test_embedded_resource", {
  description: "Gives an embedded resource",
  execute: () =>
    Effect.succeed(
      ToolResult.parts([resource("test://embedded-resource", "text/plain", "This is an embedded resource.")])
    )
})

const multipleContentTypes = Tool.make("test_multiple_content_types", {
  description: "Gives a text, an image and a resource, in this order",
  execute: () =>
    Effect.succeed(
      ToolResult.parts([
        Part.text("Several kinds of content:"),
        Part.imageData("image/png", pixel),
        resource("test://mixed-content-resource", "application/json", JSON.stringify({ test: "data", value: 123 }))
      ])
    )
})

class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String }) {}

const errorHandling = Tool.make("test_error_handling", {
  description: "Fails",
  failure: Broken,
  execute: () => Effect.fail(new Broken({ message: "This tool fails on purpose." }))
})

// ----- what a call does beside its result

const toolWithProgress = Tool.make("test_tool_with_progress", {
  description: "Reports progress three times",
  execute: Effect.fn("test_tool_with_progress")(function* () {
    for (const progress of [0, 50, 100]) {
      yield* Progress.report({ message: `completed ${progress} of 100`, progress, total: 100 })
      yield* Effect.sleep("50 millis")
    }
    return "Reported three times."
  })
})

const loggingTool = Tool.make("test_logging_tool", {
  description: "Logs, which goes to the log of the server and to no client",
  execute: () => Effect.as(Effect.logInfo("the logging tool was called"), "Logged.")
})

const streamingElicitation = Tool.make("test_streaming_elicitation", {
  description: "Simply succeeds",
  execute: () => Effect.succeed("Nothing to ask.")
})

const missingCapability = Tool.make("test_missing_capability", {
  description: "Cannot do without the model of the client",
  execute: () => Effect.succeed("The client can sample.")
}).pipe(ClientRequests.require({ sampling: {} }))

const reconnection = Tool.make("test_reconnection", {
  description: "Takes its time; whoever loses the connection meanwhile can resume it",
  execute: () => Effect.as(Effect.sleep("100 millis"), "Still here.")
})

const passing = Tool.make("test_passing_tool", {
  description: "Is there for a moment only",
  execute: () => Effect.succeed("Here.")
})

const triggerToolChange = Tool.make("test_trigger_tool_change", {
  description: "Adds a tool and removes it again, of which clients are told",
  // What registers tools is a layer: they are there for as long as it is built.
  execute: () => Effect.as(Effect.scoped(Layer.build(McpServer.tools(passing))), "The list of tools has changed.")
})

// ----- schemas

const jsonSchema = Tool.raw("json_schema_2020_12_tool", {
  description: "Shows a schema with keywords of JSON Schema 2020-12",
  parameters: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
      address: {
        $anchor: "addressDef",
        type: "object",
        properties: { street: { type: "string" }, city: { type: "string" } }
      }
    },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" }
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    // biome-ignore-start lint/suspicious/noThenProperty: a keyword of JSON Schema
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    // biome-ignore-end lint/suspicious/noThenProperty: a keyword of JSON Schema
    additionalProperties: false
  },
  execute: (call) => Effect.succeed(call.arguments)
})

const paramHeader = Tool.raw("test_x_mcp_header", {
  description: "Has an argument that clients repeat as a header",
  parameters: {
    type: "object",
    properties: {
      region: { type: "string", description: "Where", "x-mcp-header": "Region" },
      level: { type: "integer", description: "How much" }
    }
  },
  execute: (call) => Effect.succeed(`Called with ${call.arguments}.`)
})

export const ContentTools = McpServer.tools(
  simpleText,
  imageContent,
  audioContent,
  embeddedResource,
  multipleContentTypes,
  errorHandling,
  toolWithProgress,
  loggingTool,
  streamingElicitation,
  missingCapability,
  reconnection,
  triggerToolChange,
  jsonSchema,
  paramHeader
)
