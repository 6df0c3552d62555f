/**
 * What the end of a call becomes on the wire: a result, or an error result that a model can read.
 *
 * Pure. It decides nothing about when: whoever runs the call says how it ended. Read `Blocks` for the content. The types
 * are aliases, not interfaces: only so is a result a `Schema.Json`, which can be stored.
 */
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"
import * as ToolError from "@agenttool/core/ToolError"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as ToolResult from "@agenttool/core/ToolResult"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Blocks from "./Blocks.ts"
import type * as Calls from "./Calls.ts"
import * as Definition from "./Definition.ts"
import * as Wire from "./Wire.ts"

/** The record of a call's details, or why they have none although they say so (M36, M38). */
export type RecordEntry = { readonly ns: string; readonly data: string } | { readonly error: string }

/** The answer to `tools/call`. `isError` is there only on an error result. */
export type CallResult = {
  readonly content: ReadonlyArray<Blocks.ContentBlock>
  readonly structuredContent?: Schema.Json
  readonly isError?: true
  readonly _meta?: { readonly [Wire.recordKey]: RecordEntry }
}

/**
 * A tool's result. The JSON of a tool that declares a `success` schema stands beside its text; the wish to stop the batch
 * does not cross (M30).
 *
 * A result of such a tool without that JSON, which only a wrapper can give, is {@link noValue}: a client refuses a success
 * without what the listed output schema promises. The record of its details stays: it says what the call did.
 *
 * @example
 * ```ts
 * import { Tool, ToolResult } from "@agenttool/core"
 * import { CallResult } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const greet = Tool.make("greet", { execute: () => Effect.succeed("hi") })
 *
 * CallResult.success(greet, ToolResult.text("hi")) // { content: [{ type: "text", text: "hi" }] }
 * ```
 */
export const success = (tool: Tool.Any, result: ToolResult.ToolResult): CallResult => {
  if (tool.success === undefined) return { content: Blocks.fromOutput(result.output), ...metaOf(result.details) }
  return result.structured === undefined
    ? { ...noValue(tool.name), ...metaOf(result.details) }
    : {
        content: Blocks.fromOutput(result.output),
        structuredContent: result.structured,
        ...metaOf(result.details)
      }
}

/**
 * A tool's failure: its message as it is (M26), and the record of the details that it carries (M37).
 *
 * A `ToolError.ToolDefect` is shown with its value: see {@link defect} for what a stranger may read.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { CallResult } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const find = Tool.make("find", { execute: () => Effect.fail("no such user") })
 *
 * CallResult.failure(find, "no such user") // { content: [{ type: "text", text: "no such user" }], isError: true }
 * ```
 */
export const failure = (tool: Tool.Any, error: unknown): CallResult => ({
  ...errorText(Tool.failureText(tool, error)),
  ...metaOf(ToolError.detailsOf(error))
})

/** A tool died: one line without value or stack, with the reference by which the log knows the same defect (M27). */
export const defect = (tool: string, reference: string): CallResult => errorText(Wire.defectText(tool, reference))

/** Something other than its client stopped the call while a request waited on it (M28). */
export const stopped = (tool: string, reason: string): CallResult => errorText(Wire.stoppedText(tool, reason))

/** Answers came for a call that no longer waits for them (M55). */
export const notWaiting = (tool: string): CallResult => errorText(Wire.notWaitingText(tool))

/** The result is larger than it may be, both in bytes of its JSON (M30). */
export const tooLarge = (tool: string, bytes: number, limit: number): CallResult =>
  errorText(Wire.tooLargeText(tool, bytes, limit))

/** The result has no value, although the tool lists an output schema (M30). */
export const noValue = (tool: string): CallResult => errorText(Wire.noValueText(tool))

/** Too many calls run already, and too many wait for their turn. */
export const busy = (tool: string): CallResult => errorText(Wire.busyText(tool))

const errorText = (text: string): CallResult => ({ content: [Blocks.text(text)], isError: true })

/** Details that are no record leave nothing, not even an empty `_meta` (M39). */
const metaOf = (details: unknown): Pick<CallResult, "_meta"> => {
  const record = ToolRecord.read(details)
  const entry = Exit.isSuccess(record)
    ? Option.getOrUndefined(record.value)
    : Option.getOrUndefined(Option.map(Exit.findErrorOption(record), ({ message }) => ({ error: message })))
  return entry === undefined ? {} : { _meta: { [Wire.recordKey]: entry } }
}

// ----- size

/**
 * The result itself, or {@link tooLarge} in its place where its JSON is longer than `limit` bytes (M30). The record stays
 * beside it where that fits: it says what the call did.
 */
export const bounded = (tool: string, result: CallResult, limit: number): CallResult => {
  if (atMostBytes(result) <= limit) return result
  const bytes = jsonBytes(result)
  if (bytes <= limit) return result
  const instead = tooLarge(tool, bytes, limit)
  if (result._meta === undefined) return instead
  const recorded: CallResult = { ...instead, _meta: result._meta }
  return jsonBytes(recorded) <= limit ? recorded : instead
}

const jsonBytes = (result: CallResult): number => {
  const json = Result.try(() => new TextEncoder().encode(JSON.stringify(result)))
  // A result whose JSON no string can hold is too large for any limit.
  return Result.isSuccess(json) ? json.success.byteLength : Number.POSITIVE_INFINITY
}

/** A bound that costs next to nothing: most results are so far below the limit that their JSON need not be written. */
const atMostBytes = (result: CallResult): number => {
  const pending: Array<unknown> = [result]
  let bytes = 0
  while (pending.length > 0) {
    const value = pending.pop()
    // A character that JSON escapes takes six bytes, and no character takes more.
    if (typeof value === "string") bytes += 6 * value.length + 3
    else if (Array.isArray(value)) {
      bytes += 3
      for (const element of value) pending.push(element)
    } else if (Predicate.isObject(value)) {
      bytes += 3
      for (const [key, member] of Object.entries(value)) pending.push(key, member)
    } else bytes += 26
  }
  return bytes
}

// ----- before 2026-07-28

/**
 * The result as clients before 2026-07-28 may see it: a value of an output schema that is no object is the member
 * `result` of one, as `Definition.forLegacy` says of its schema (P131). The same object where nothing differs.
 */
export const forLegacy = (tool: Tool.Any, result: CallResult): CallResult =>
  result.structuredContent === undefined || tool.success === undefined || !Definition.isWrappedForLegacy(tool.success)
    ? result
    : { ...result, structuredContent: { result: result.structuredContent } }

// ----- while it runs

/**
 * An update of progress as MCP has it: the text of the update's output, and its numbers if it has any, else its position
 * among all updates of the call, from 1 (M70). Whoever sends it sees to it that the numbers rise (M71).
 */
export const progress = (update: ToolResult.ToolResult, position: number): Calls.ProgressUpdate => {
  const { message = "", progress = position, total = 0 } = Progress.infoOf(update) ?? {}
  const words = message === "" ? ToolResult.textOf(update.output) : message
  return {
    // A number that JSON has no form of would have clients refuse the notification.
    progress: Number.isFinite(progress) ? progress : position,
    ...(total !== 0 && Number.isFinite(total) ? { total } : {}),
    ...(words === "" ? {} : { message: words })
  }
}
