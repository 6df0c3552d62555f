/**
 * Between the tools of this package and those of `effect/ai`, in both directions: {@link toToolkit} gives our tools to an
 * effect/ai `LanguageModel`, {@link fromToolkit} makes an effect/ai toolkit our tools, to run, to batch or to serve.
 *
 * `effect/ai` is marked unstable: this module is the only one of the package that uses it. It is not part of the index,
 * since loading it costs a fifth of what loading Effect costs: `import * as AiTool from "@agenttool/core/AiTool"`.
 *
 * What effect/ai has no word for is lost on the way there: it runs the calls of one response as its `concurrency` option
 * says and knows no order among them, so give it `concurrency: 1` with tools that are sequential or share a resource.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Ai from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type * as AiError from "effect/ai/AiError"
import type * as JsonSchema from "effect/JsonSchema"
import * as aiParts from "./internal/aiParts.ts"
import * as aiTools from "./internal/aiTools.ts"
import * as Progress from "./Progress.ts"
import * as Tool from "./Tool.ts"
import * as Toolbox from "./Toolbox.ts"
import * as ToolCall from "./ToolCall.ts"
import * as ToolError from "./ToolError.ts"
import * as ToolResult from "./ToolResult.ts"

// ---------------------------------------------------------------------------------------------------------------------
// Our tools, for effect/ai
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A call of one of our tools failed, as effect/ai sees it. `failure` is the tool's own failure, or one of `ToolError`,
 * with its details for the harness. The model reads `Error: ` and the message (C103).
 */
export class CallFailed extends Schema.TaggedError<CallFailed>()("CallFailed", {
  message: Schema.String,
  failure: Schema.Unknown
}) {}

/** One of our tools as a tool of effect/ai: it succeeds with our result, and needs what the tool needs. */
export type FromTool<T extends Tool.Any> =
  T extends Tool.Tool<infer _E, infer R, infer _Args, infer A>
    ? Ai.Dynamic<
        string,
        {
          readonly parameters: JsonSchema.JsonSchema
          readonly success: Schema.Codec<ToolResult.ToolResult<A>, Schema.Json>
          readonly failure: Schema.Codec<CallFailed, string>
          readonly failureMode: "return"
        },
        Exclude<R, Tool.Provided>
      >
    : never

/**
 * A tool as effect/ai describes it: its JSON Schema, its description, its annotations. Unstated annotations stay
 * unstated; a tool that does not declare strict says so, or a provider might take it for strict.
 *
 * A successful call is our `ToolResult`: its JSON is the structured value or the text, and a model reads the output, parts
 * included. A failed one is a {@link CallFailed} among the results, never an error of the loop; a defect too (C105).
 */
export const toTool = <T extends Tool.Any>(tool: T): FromTool<T> =>
  Ai.dynamic(tool.name, {
    description: tool.description,
    // Their type for a JSON Schema is a mutable record of anything; nobody writes to it.
    parameters: Tool.inputSchema(tool) as JsonSchema.JsonSchema,
    success: Result,
    failure: Failure,
    failureMode: "return",
    toModelOutput: (result: ToolResult.ToolResult) => aiParts.fromOutput(result.output)
  }).annotateMerge(aiTools.toAnnotations(tool)) as unknown as FromTool<T> // the types only say more of the same tool

/**
 * Runs a call of a tool as effect/ai's handlers are run: the arguments are checked as a model's are, by the tool or against
 * its schema; progress goes out as preliminary results; what else the tool uses is taken from the caller's context.
 */
export const toHandler = <T extends Tool.Any>(
  tool: T
): ((
  parameters: unknown,
  context: Toolkit.HandlerContext<FromTool<T>>
) => Effect.Effect<ToolResult.ToolResult, CallFailed, Ai.Requirements<FromTool<T>>>) => {
  // A call without an id still gets one of its own (C87).
  let invented = 0
  return (parameters, context) =>
    Tool.runCall(
      tool as Tool.Tool<unknown, Ai.Requirements<FromTool<T>>>, // what `runCall` provides is left out of them
      ToolCall.fromValue({
        id: context.toolCallId ?? `${tool.name}_${++invented}`,
        tool: tool.name,
        value: parameters ?? {}
      })
    ).pipe(
      Effect.provideService(Progress.Progress, {
        // An update is a result without a typed value, whatever the tool returns in the end.
        update: (update) => context.preliminary(update as Ai.Success<FromTool<T>>)
      }),
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.mapError((failure) => new CallFailed({ message: Tool.failureText(tool, failure), failure }))
    )
}

/**
 * Tools as a toolkit with handlers, for the `toolkit` option of a `LanguageModel`. Two tools of one name are a fault of the
 * program: a defect, the `ToolboxError` of the set (C12).
 *
 * A tool's requirements become those of the loop. A question that a tool asks, and a record that it writes, go where the
 * context of the loop says.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import * as AiTool from "@agenttool/core/AiTool"
 * import { Effect, Schema } from "effect"
 * import { LanguageModel } from "effect/ai"
 *
 * const weather = Tool.make("weather", {
 *   description: "Weather for a city",
 *   parameters: Schema.Struct({ city: Schema.String }),
 *   execute: ({ city }) => Effect.succeed(`sun in ${city}`)
 * })
 *
 * const program = LanguageModel.generateText({
 *   prompt: "How is the weather in Oslo?",
 *   toolkit: AiTool.toToolkit(weather)
 * })
 * ```
 */
export const toToolkit = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Effect.Effect<Toolkit.WithHandler<Record<string, FromTool<Tools[number]>>>> =>
  Effect.gen(function* () {
    yield* Effect.orDie(Effect.fromResult(Toolbox.check(tools)))
    const kit = Toolkit.make(...tools.map((tool) => toTool(tool)))
    const handlers = yield* kit.toHandlers(Object.fromEntries(tools.map((tool) => [tool.name, toHandler(tool)])))
    // A list of tools of several types gives a record of their union; the loop needs no more.
    return (yield* Effect.provideContext(kit, handlers)) as unknown as Toolkit.WithHandler<
      Record<string, FromTool<Tools[number]>>
    >
  })

const Result: Schema.Codec<ToolResult.ToolResult, Schema.Json> = Schema.Json.pipe(
  Schema.decodeTo(
    Schema.declare(ToolResult.isToolResult),
    SchemaTransformation.transform({
      decode: (json): ToolResult.ToolResult =>
        typeof json === "string" ? ToolResult.text(json) : ToolResult.structured(json, json),
      encode: (result) => result.structured ?? ToolResult.textOf(result.output)
    })
  )
)

const prefix = "Error: "

const Failure: Schema.Codec<CallFailed, string> = Schema.String.pipe(
  Schema.decodeTo(
    Schema.declare((value) => value instanceof CallFailed),
    SchemaTransformation.transform({
      decode: (text) => {
        const message = text.startsWith(prefix) ? text.slice(prefix.length) : text
        return new CallFailed({ message, failure: new ToolError.ToolFailure({ message }) })
      },
      encode: (failed) => `${prefix}${failed.message}`
    })
  )
)

// ---------------------------------------------------------------------------------------------------------------------
// Tools of effect/ai, for us
// ---------------------------------------------------------------------------------------------------------------------

/** A tool of effect/ai as one of ours: the same arguments, failures, requirements and value. */
export type ToTool<T extends Ai.Any> = Tool.Tool<
  Ai.FailureResult<T> | AiError.AiError,
  Ai.HandlerServices<T>,
  Ai.ParametersEncoded<T>,
  Ai.Success<T>
>

/**
 * The tools of a toolkit as ours, by name. Tools that only their provider runs are left out.
 *
 * - Schema, description, title, the four hints and strict are kept; every annotation can be read with `Tool.settingOf`.
 * - Arguments: checked by the toolkit's own schema, or against a raw JSON Schema. What does not fit is
 *   `invalid arguments: ...`, as of any tool.
 * - Results: the parts that the tool shows a model, where it has such; else a text as it is, anything else as JSON. The
 *   typed value is beside it. Preliminary results are progress.
 * - Failures: the tool's own, whichever its failure mode; a result that does not encode is `encode result: ...`.
 * - A tool that needs approval asks for it first: without a yes it fails, and nothing has run.
 *
 * @example
 * ```ts
 * import * as AiTool from "@agenttool/core/AiTool"
 * import { Effect, Schema } from "effect"
 * import { Tool as Ai, Toolkit } from "effect/ai"
 * import { Tool } from "@agenttool/core"
 *
 * const Kit = Toolkit.make(Ai.make("ping", { success: Schema.String }))
 *
 * const program = Effect.gen(function* () {
 *   const { ping } = AiTool.fromToolkit(yield* Kit)
 *   return yield* Tool.run(ping, {}) // output: "pong"
 * }).pipe(Effect.provide(Kit.toLayer({ ping: () => Effect.succeed("pong") })))
 * ```
 */
export const fromToolkit = <Tools extends Record<string, Ai.Any>>(
  toolkit: Toolkit.WithHandler<Tools>
): {
  readonly [Name in keyof Tools as Ai.RequiresHandler<Tools[Name]> extends true ? Name : never]: ToTool<Tools[Name]>
} =>
  // One tool for each name, with the types of the tool of that name.
  Object.fromEntries(
    Object.entries(toolkit.tools)
      .filter(([, tool]) => !Ai.isProviderDefined(tool) || tool.requiresHandler)
      .map(([name, tool]) => [name, aiTools.fromTool(toolkit.handle, tool)])
  ) as never
