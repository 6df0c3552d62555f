/**
 * The errors of the tool contract. Each owns the text that a model reads, so that the text is written in one place.
 *
 * A tool's own failures may be any value: {@link messageOf} says what a model reads of it. Nothing here adds the
 * prefix `Error: `; only the last step, the one that builds a model's output, does (C103).
 */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A name or an id in double quotes, as every text of the contract quotes it. */
export const quote = (name: string): string => JSON.stringify(name)

/** One line: line breaks, and the white space around them, become one space. */
export const oneLine = (text: string): string =>
  text
    .split(/[\r\n\u2028\u2029]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ")

/**
 * The arguments do not fit the tool's parameters. `path` names the value (`list[0].name`), empty at the root.
 *
 * Text: `invalid arguments: PATH: DETAIL`, or `invalid arguments: DETAIL` at the root (C188).
 */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return this.path === "" ? `invalid arguments: ${this.detail}` : `invalid arguments: ${this.path}: ${this.detail}`
  }
}

/** What the tool returned has no JSON form. Text: `encode result: REASON` (C18). */
export class ResultNotEncodable extends Schema.TaggedError<ResultNotEncodable>()("ResultNotEncodable", {
  reason: Schema.String
}) {
  override get message(): string {
    return `encode result: ${this.reason}`
  }
}

/** The two ways in which running any tool can fail beside the tool's own failures. */
export type ToolError = InvalidArguments | ResultNotEncodable

/**
 * A failure with the message that the model reads, for tools that need no error type of their own.
 *
 * `details` and `terminate` travel beside the message: neither reaches the model (C101).
 *
 * @example
 * ```ts
 * import { ToolError } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const failed = Effect.fail(new ToolError.ToolFailure({ message: "disk on fire" }))
 * ```
 */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String,
  details: Schema.optionalKey(Schema.Unknown),
  terminate: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * A tool ended outside its own error channel. Text: `tool "NAME" panicked: VALUE`, one line (C105).
 *
 * `cause` is for the harness and for logs, never for the model.
 */
export class ToolDefect extends Schema.TaggedError<ToolDefect>()("ToolDefect", {
  tool: Schema.String,
  value: Schema.String,
  cause: Schema.Unknown
}) {
  override get message(): string {
    return `tool ${quote(this.tool)} panicked: ${this.value}`
  }
}

/** The tool cannot be built as it is written (C17). Thrown by constructors, at construction. */
export class ToolBuildError extends Schema.TaggedError<ToolBuildError>()("ToolBuildError", {
  constructor: Schema.String,
  tool: Schema.String,
  path: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    const where = this.path === "" ? "" : `${this.path}: `
    return `agenttool: ${this.constructor}(${quote(this.tool)}): ${where}${this.reason}`
  }
}

/** What a thrown value is called in one line: an error's message, or its name where that is empty; anything else as text. */
export const defectValue = (defect: unknown): string =>
  oneLine(
    defect instanceof Error ? defect.message || nameOf(defect) : typeof defect === "string" ? defect : stringify(defect)
  )

/**
 * What a model reads of a failure: a text as it is, the `message` of an error or of any value that has one, the tag or the
 * name of an error without a message, else its JSON.
 *
 * @example
 * ```ts
 * import { ToolError } from "@agenttool/core"
 *
 * ToolError.messageOf(new Error("no such user")) // "no such user"
 * ToolError.messageOf("plain") // "plain"
 * ToolError.messageOf(new TypeError("")) // "TypeError"
 * ```
 */
export const messageOf = (failure: unknown): string =>
  ownMessage(failure) ?? (failure instanceof Error ? nameOf(failure) : stringify(failure))

// For an error without a message. Its JSON would say nothing: `{}`, or its fields without what it is.
const nameOf = (error: Error): string => {
  // A name of ours means nothing to a model.
  if (error instanceof ToolFailure) return "the tool failed without saying why"
  return Predicate.hasProperty(error, "_tag") && typeof error._tag === "string" ? error._tag : error.name || "Error"
}

/** The text that a failure brings itself, if it brings one. */
export const ownMessage = (failure: unknown): string | undefined => {
  if (typeof failure === "string") return failure
  return Predicate.hasProperty(failure, "message") && typeof failure.message === "string" && failure.message !== ""
    ? failure.message
    : undefined
}

/** The details that a failure carries for the harness (C101), if it carries any. */
export const detailsOf = (failure: unknown): unknown =>
  Predicate.hasProperty(failure, "details") ? failure.details : undefined

/** Whether a failure asks the harness to stop after its batch (C101). */
export const terminateOf = (failure: unknown): boolean =>
  Predicate.hasProperty(failure, "terminate") && failure.terminate === true

/**
 * The failure of a call that ended with this cause: the tool's own failure, else the defect as {@link ToolDefect}, else
 * none, which means that the call was interrupted.
 */
export const failureOf = (tool: string, cause: Cause.Cause<unknown>): Option.Option<unknown> => {
  const failed = Cause.findErrorOption(cause)
  if (Option.isSome(failed)) return failed
  const died = cause.reasons.find(Cause.isDieReason)
  if (died === undefined) return Option.none()
  // Whatever ran the tool may have named it already.
  if (died.defect instanceof ToolDefect) return Option.some(died.defect)
  return Option.some(new ToolDefect({ tool, value: defectValue(died.defect), cause }))
}

// A value without a JSON form still needs a text: this is used to report failures and must not fail itself.
const stringify = (value: unknown): string => {
  const json = Result.try((): string | undefined => JSON.stringify(value))
  if (Result.isSuccess(json) && json.success !== undefined) return json.success
  return Result.getOrElse(
    Result.try(() => String(value)),
    () => "a value without a text"
  )
}
