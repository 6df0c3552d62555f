/**
 * How a call of a batch can fail beside the failures of its tool (C107). Each owns the text that a model reads, without
 * the prefix `Error: `.
 */
import * as Schema from "effect/Schema"
import { quote } from "./ToolError.ts"

/** The model called a tool that is not there. Text: `no tool for call "ID"` (C146). */
export class NoTool extends Schema.TaggedError<NoTool>()("NoTool", { call: Schema.String }) {
  override get message(): string {
    return `no tool for call ${quote(this.call)}`
  }
}

/**
 * The batch was cancelled before the call had a result (C149). `started`: whether its tool was called; if not, the call is
 * not ambiguous (C158).
 */
export class Cancelled extends Schema.TaggedError<Cancelled>()("Cancelled", {
  call: Schema.String,
  started: Schema.Boolean
}) {
  override get message(): string {
    return this.started ? "the call was cancelled" : "the call was cancelled before it started"
  }
}

/** The tool interrupted itself, or something else than the batch did (C153). */
export class Interrupted extends Schema.TaggedError<Interrupted>()("Interrupted", { tool: Schema.String }) {
  override get message(): string {
    return `tool ${quote(this.tool)} was interrupted`
  }
}

/**
 * The start hook ended outside its own error channel. Text: `agenttool: OnStart for call "ID" panicked: VALUE` (C143).
 *
 * `cause` is for logs.
 */
export class StartPanicked extends Schema.TaggedError<StartPanicked>()("StartPanicked", {
  call: Schema.String,
  value: Schema.String,
  cause: Schema.Unknown
}) {
  override get message(): string {
    return `agenttool: OnStart for call ${quote(this.call)} panicked: ${this.value}`
  }
}

/** The call may have run and must not run again (C159): what its model is told. */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {
  call: Schema.String,
  tool: Schema.String
}) {
  override get message(): string {
    return `tool ${quote(this.tool)}: the outcome is unknown: the call may have taken effect and is not run again`
  }
}

/** What any call of any batch can fail with. */
export type ExecutorError = NoTool | Cancelled | Interrupted | StartPanicked
