/**
 * Agent tools as immutable Effect values. Each module is one concept, used as a namespace: `Tool.make`, `ToolResult.text`.
 */
export * as Executor from "./Executor.ts"
export * as ExecutorError from "./ExecutorError.ts"
export * as JsonSchemaCheck from "./JsonSchemaCheck.ts"
export * as Part from "./Part.ts"
export * as Plan from "./Plan.ts"
export * as Question from "./Question.ts"
export * as Recorder from "./Recorder.ts"
export * as ToolCall from "./ToolCall.ts"
export * as ToolError from "./ToolError.ts"
export * as ToolRecord from "./ToolRecord.ts"
export * as ToolResult from "./ToolResult.ts"
export * as Toolbox from "./Toolbox.ts"
