/**
 * What a call gives back: an output for the model, and beside it what only the harness sees (C94–C101).
 *
 * A tool's function rarely builds one: a text, nothing, or any JSON value it returns becomes a result by {@link from}.
 * It builds one to return parts, details, or the wish to stop.
 */
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Part from "./Part.ts"
import * as ToolError from "./ToolError.ts"

const TypeId = "~@agenttool/core/ToolResult"

/** What the model sees: a text, or a list of content parts. */
export type Output = string | ReadonlyArray<Part.Part>

/**
 * The result of a call.
 *
 * - `output`: for the model.
 * - `details`: for the harness alone; a recordable value (see `ToolRecord`) outlives the process.
 * - `terminate`: asks the harness to stop after this batch.
 * - `value`: what a tool with a `success` schema returned, typed; `structured` is its JSON.
 */
export interface ToolResult<out A = unknown> {
  readonly [TypeId]: typeof TypeId
  readonly output: Output
  readonly details?: unknown
  readonly terminate?: boolean
  readonly value?: A
  readonly structured?: Schema.Json
}

interface Extras {
  readonly details?: unknown
  readonly terminate?: boolean
}

const makeResult = (output: Output, extras?: Extras): ToolResult<never> => ({
  [TypeId]: TypeId,
  output,
  ...(extras?.details === undefined ? {} : { details: extras.details }),
  ...(extras?.terminate === undefined ? {} : { terminate: extras.terminate })
})

/** Whether a value is a result. */
export const isToolResult = (value: unknown): value is ToolResult =>
  typeof value === "object" && value !== null && TypeId in value

/**
 * A result with a text.
 *
 * @example
 * ```ts
 * import { ToolResult } from "@agenttool/core"
 *
 * ToolResult.text("done", { terminate: true })
 * ```
 */
export const text = (output: string, extras?: Extras): ToolResult<never> => makeResult(output, extras)

/**
 * A result with content parts. An empty list is a list, not an empty text (C96).
 *
 * @example
 * ```ts
 * import { Part, ToolResult } from "@agenttool/core"
 *
 * ToolResult.parts([Part.text("a cat"), Part.image("https://example.com/cat.png")])
 * ```
 */
export const parts = (output: ReadonlyArray<Part.Part>, extras?: Extras): ToolResult<never> =>
  makeResult(output, extras)

/** The result of a tool with a `success` schema: the JSON as text, the JSON, and the typed value. */
export const structured = <A>(value: A, json: Schema.Json): ToolResult<A> => ({
  [TypeId]: TypeId,
  output: JSON.stringify(json),
  value,
  structured: json
})

/** The same result with these details for the harness. */
export const withDetails: {
  (details: unknown): <A>(self: ToolResult<A>) => ToolResult<A>
  <A>(self: ToolResult<A>, details: unknown): ToolResult<A>
} = dual(2, <A>(self: ToolResult<A>, details: unknown): ToolResult<A> => ({ ...self, details }))

/** The text form of an output: the text, or the texts of its textual parts with nothing between them (C98). */
export const textOf = (output: Output): string => (typeof output === "string" ? output : Part.textOf(output))

/**
 * What a tool's function returned, as a result (C18): a result as it is; a text as it is; nothing as the empty text;
 * anything else as its JSON. Fails where there is no JSON.
 *
 * @example
 * ```ts
 * import { ToolResult } from "@agenttool/core"
 *
 * ToolResult.from({ doubled: 4 }) // Exit.succeed: output {"doubled":4}
 * ```
 */
export const from = (returned: unknown): Exit.Exit<ToolResult, ToolError.ResultNotEncodable> => {
  if (typeof returned === "string") return Exit.succeed(makeResult(returned))
  if (returned === undefined || returned === null) return Exit.succeed(makeResult(""))
  if (isToolResult(returned)) return Exit.succeed(returned)
  return Exit.map(encode(returned), (json) => makeResult(json))
}

/** The JSON text of a value, or why it has none: a cycle, a BigInt, a function, a `toJSON` that throws. */
export const encode = (value: unknown): Exit.Exit<string, ToolError.ResultNotEncodable> => {
  const json = Result.try((): string | undefined => JSON.stringify(value))
  if (Result.isFailure(json)) {
    return Exit.fail(new ToolError.ResultNotEncodable({ reason: ToolError.defectValue(json.failure) }))
  }
  return json.success === undefined
    ? Exit.fail(new ToolError.ResultNotEncodable({ reason: `a value of type ${typeof value} has no JSON` }))
    : Exit.succeed(json.success)
}
