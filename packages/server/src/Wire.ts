/**
 * What stands on the wire byte for byte, in one place: method and key names, fixed values, and the texts that more than
 * one module answers with. A consuming package spells the names again, and a test holds the two spellings equal.
 *
 * Nothing here decides anything, and nothing here is of the MCP specification itself: the SDK owns those names.
 */
import * as ToolError from "@agenttool/core/ToolError"
import type * as Schema from "effect/Schema"

/** The method that answers claims about calls. */
export const factsMethod = "execution/facts"

/** The experimental capability of a server that answers {@link factsMethod}. Its value is `{}`. */
export const factsCapability = "io.github.christopherdavenport.agenttool/facts"

/** The `_meta` key of a call result, for the record of its details (M36). */
export const recordKey = "io.github.christopherdavenport.agenttool/record"

/** The `_meta` key of a tool definition, for what a harness reads of the tool (M17). */
export const toolKey = "io.github.christopherdavenport.agenttool/tool"

/** The media type of bytes of which nothing is known. */
export const unknownBytes = "application/octet-stream"

/** The first revision at which a question is the answer of the call: later ones are "modern", earlier ones are not. */
export const firstModernVersion = "2026-07-28"

/** The schema of a form without fields: a question for a mere yes or no (M48). */
export const emptyForm: Schema.JsonObject = Object.freeze({ type: "object", properties: Object.freeze({}) })

/** The start of what this layer says about a tool. */
const about = (tool: string): string => `mcpserver: tool ${ToolError.quote(tool)}: `

/** Answers came for a call that does not wait for them: spent, expired, or never ours (M55). */
export const notWaitingText = (tool: string): string =>
  `${about(tool)}the call these answers belong to is no longer waiting for them; call the tool again`

/** Something other than its client stopped the call while a request waited on it (M28). */
export const stoppedText = (tool: string, reason: string): string =>
  `${about(tool)}the call was stopped: ${reason}; call the tool again`

/** The tool died (M27). `reference` is what the log calls the same defect. */
export const defectText = (tool: string, reference: string): string =>
  `tool ${ToolError.quote(tool)} failed unexpectedly (${reference})`

/** The result is larger than it may be, both in bytes of JSON (M30). */
export const tooLargeText = (tool: string, bytes: number, limit: number): string =>
  `${about(tool)}the result is too large: ${bytes} bytes, at most ${limit} are allowed`

/** A wrapper gave a result of its own, without the value that the listed output schema obliges to (M30, P82). */
export const noValueText = (tool: string): string =>
  `${about(tool)}the result lacks the value that its output schema promises`

/** Too many calls run already, and too many wait for their turn. */
export const busyText = (tool: string): string => `${about(tool)}the server is busy; try again later`
