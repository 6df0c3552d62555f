/**
 * The tool: an immutable, pipeable value. A name, a description, a schema and a function; everything else is a property
 * that a combinator sets and a reader reads.
 *
 * This module builds, derives and runs single tools. `Toolbox` is a checked set of them, `Executor` runs the calls of one
 * model response, and `@agenttool/server` serves them. Read `ToolResult` for what a function may return.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Canonical from "./Canonical.ts"
import { noArguments } from "./internal/noArguments.ts"
import * as running from "./internal/runTool.ts"
import * as internal from "./internal/tool.ts"
import * as typed from "./internal/typedTool.ts"
import type * as JsonSchemaCheck from "./JsonSchemaCheck.ts"
import * as Properties from "./Properties.ts"
import * as ToolCall from "./ToolCall.ts"
import * as ToolError from "./ToolError.ts"
import type * as ToolResult from "./ToolResult.ts"

/** Runs one call of a tool. */
export type Execute<A, E, R> = (call: ToolCall.Call) => Effect.Effect<ToolResult.ToolResult<A>, E, R>

/**
 * A tool that may fail with `E`, needs `R`, takes arguments whose JSON is of type `Args`, and whose typed value is `A`.
 *
 * `parameters` is the JSON Schema of the arguments object, absent for a tool without arguments; `success` is the JSON
 * Schema of the value of a tool that declares one.
 */
export interface Tool<out E = never, out R = never, in Args = never, out A = unknown> extends Pipeable.Pipeable {
  readonly [internal.TypeId]: typeof internal.TypeId
  readonly name: string
  readonly description: string
  readonly parameters: Schema.JsonObject | undefined
  readonly success: Schema.JsonObject | undefined
  readonly properties: Properties.Properties<R>
  readonly execute: Execute<A, E | ToolError.ToolError, R>
  /** Not for use: what the constructors and combinators of this module know. */
  readonly inner: internal.Inner
  /** Carries the type of the arguments; never there. */
  readonly "~args"?: (args: Args) => void
}

/** Any tool. */
export type Any = Tool<unknown, unknown, never, unknown>

/** What every runner of tools provides: the call, and a scope that ends with it. */
export type Provided = ToolCall.ToolCall | Scope.Scope

/** What a tool needs, without what every runner of tools provides: the call, and a scope that ends with it. */
export type Requirements<T extends Any> = Exclude<Services<T>, Provided>

/** All that a tool needs. */
export type Services<T extends Any> = T extends Tool<infer _E, infer R, infer _Args, infer _A> ? R : never

/** Whether a value is a tool. */
export const isTool = (value: unknown): value is Any => Predicate.hasProperty(value, internal.TypeId)

// ---------------------------------------------------------------------------------------------------------------------
// Constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Options of {@link make}, but for the function.
 *
 * - `description`: for the model. Default empty.
 * - `parameters`: the arguments, a struct whose JSON form can be written as a JSON Schema. Default: no arguments.
 * - `jsonSchema`: shows this schema instead of a generated one, as it is, also under strict. The tool then only decodes;
 *   whatever runs it checks the arguments against the schema first, as it does for {@link raw}.
 * - `check`: `false` turns the check against the schema off, the decoder is then the only guard.
 * - `failure`: the type of the function's failures; a failure without a text `message` is shown as its JSON.
 */
export interface Options<P extends typed.Parameters, F extends typed.Failure> {
  readonly description?: string | undefined
  readonly parameters?: P | undefined
  readonly jsonSchema?: Schema.JsonObject | undefined
  readonly check?: boolean | undefined
  readonly failure?: F | undefined
}

/**
 * A typed tool: its schema is generated from `parameters`, its arguments are checked and decoded before the function runs.
 *
 * What the function returns becomes the result by `ToolResult.from`. With a `success` schema it returns that type, the
 * output is its JSON, and a server lists an `outputSchema`.
 *
 * Throws a `ToolError.ToolBuildError` that names tool and path where a schema cannot be expressed.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Effect, Schema } from "effect"
 *
 * const add = Tool.make("add", {
 *   description: "Add two integers",
 *   parameters: Schema.Struct({ a: Schema.Int, b: Schema.Int }),
 *   success: Schema.Struct({ sum: Schema.Int }),
 *   execute: ({ a, b }) => Effect.succeed({ sum: a + b })
 * })
 *
 * const five = Tool.run(add, { a: 2, b: 3 }) // value: { sum: 5 }, output: {"sum":5}
 * ```
 */
export function make<
  A,
  E extends F["Type"],
  R,
  P extends typed.Parameters = typeof typed.NoParameters,
  F extends typed.Failure = typeof typed.AnyFailure
>(
  name: string,
  options: Options<P, F> & {
    readonly success?: undefined
    readonly execute: (parameters: P["Type"]) => Effect.Effect<A, E, R>
  }
): Tool<E, R, P["Encoded"], never>
// The last overload is the one that the compiler speaks of when none fits.
export function make<
  S extends typed.Success,
  E extends F["Type"],
  R,
  P extends typed.Parameters = typeof typed.NoParameters,
  F extends typed.Failure = typeof typed.AnyFailure
>(
  name: string,
  options: Options<P, F> & {
    readonly success: S
    readonly execute: (parameters: P["Type"]) => Effect.Effect<S["Type"], E, R>
  }
): Tool<E, R, P["Encoded"], S["Type"]>
export function make(name: string, options: typed.Options): Any {
  return typed.make(name, options)
}

/**
 * A tool with a JSON Schema that its author supplies, byte for byte, or none. Its function gets the call as it is; the
 * arguments are checked by whatever runs the tool, not by the tool.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const echo = Tool.raw("echo", {
 *   description: "Gives its arguments back",
 *   parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
 *   execute: (call) => Effect.succeed(call.arguments)
 * })
 * ```
 */
export const raw = <A, E, R>(
  name: string,
  options: {
    readonly description?: string | undefined
    readonly parameters?: Schema.JsonObject | undefined
    readonly execute: (call: ToolCall.Call) => Effect.Effect<A, E, R>
  }
): Tool<E, R, Schema.JsonObject, never> => {
  if (typeof options.execute !== "function") typed.nilFunction("Tool.raw", name)
  return internal.fromFields({
    name,
    description: options.description ?? "",
    parameters: options.parameters,
    success: undefined,
    properties: Properties.defaults,
    execute: (call) => Effect.flatMap(options.execute(call), typed.untypedResult),
    inner: {
      check: "supplied",
      shape: undefined,
      rebuild: undefined,
      build: internal.plainly,
      wrapped: undefined,
      rewrap: undefined,
      failureText: ToolError.messageOf,
      prepared: internal.preparedFor("supplied", options.parameters)
    }
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// Running
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs a tool directly. The arguments are those of the JSON, typed by the schema, and are checked as a model's are.
 *
 * The call and a scope that ends with it are provided. A defect of the tool stays a defect: a `ToolError.ToolDefect`.
 *
 * @example
 * ```ts
 * import { Tool, ToolResult } from "@agenttool/core"
 * import { Effect, Schema } from "effect"
 *
 * const upper = Tool.make("upper", {
 *   parameters: Schema.Struct({ text: Schema.String }),
 *   execute: ({ text }) => Effect.succeed(text.toUpperCase())
 * })
 *
 * const program = Effect.map(Tool.run(upper, { text: "hi" }), (result) => ToolResult.textOf(result.output)) // "HI"
 * ```
 */
export const run: {
  <Args>(
    // Not a tool: else arguments that are missing would be taken for the options of this form.
    args: Args & { readonly [internal.TypeId]?: never },
    options?: RunOptions
  ): <E, R, A>(
    self: Tool<E, R, Args, A>
  ) => Effect.Effect<ToolResult.ToolResult<A>, E | ToolError.ToolError, Exclude<R, Provided>>
  // Last: what the compiler says of arguments that do not fit is said of this one.
  <E, R, Args, A>(
    self: Tool<E, R, Args, A>,
    args: Args,
    options?: RunOptions
  ): Effect.Effect<ToolResult.ToolResult<A>, E | ToolError.ToolError, Exclude<R, Provided>>
} = dual(
  (args) => isTool(args[0]),
  <E, R, Args, A>(self: Tool<E, R, Args, A>, args: Args, options?: RunOptions) =>
    runCall(
      self,
      ToolCall.make({
        id: options?.id ?? "call_1",
        tool: self.name,
        arguments: JSON.stringify(args),
        idempotencyKey: options?.idempotencyKey
      })
    )
)

/** `id` is the call's id (default `call_1`); `idempotencyKey` is for tools that deduplicate. */
export interface RunOptions {
  readonly id?: string | undefined
  readonly idempotencyKey?: string | undefined
}

/**
 * Runs one call of a tool, as every harness does: checks supplied schemas, provides the call and a scope, and names the
 * tool in its defect.
 */
export const runCall: {
  (
    call: ToolCall.Call
  ): <E, R, Args, A>(
    self: Tool<E, R, Args, A>
  ) => Effect.Effect<ToolResult.ToolResult<A>, E | ToolError.ToolError, Exclude<R, Provided>>
  <E, R, Args, A>(
    self: Tool<E, R, Args, A>,
    call: ToolCall.Call
  ): Effect.Effect<ToolResult.ToolResult<A>, E | ToolError.ToolError, Exclude<R, Provided>>
} = dual(
  2,
  <E, R, Args, A>(
    self: Tool<E, R, Args, A>,
    call: ToolCall.Call
  ): Effect.Effect<ToolResult.ToolResult<A>, E | ToolError.ToolError, Exclude<R, Provided>> => running.run(self, call)
)

/**
 * What is wrong with a call's arguments, as its harness sees it: whether they are an object, and fit a schema that its
 * author supplied. Of a tool that checks its arguments itself, against a generated schema, nothing is looked at here.
 *
 * A supplied schema that does not parse is a fault of every call; a server refuses it when the tool is registered.
 */
export const faultOf: (self: Any, call: ToolCall.Call) => ToolError.InvalidArguments | undefined = running.faultOf

/**
 * The harness's check of the arguments, compiled at most once per tool: what a server asks for when a tool is registered.
 */
export const prepare = (self: Any): Result.Result<JsonSchemaCheck.JsonSchemaCheck, JsonSchemaCheck.JsonSchemaError> =>
  self.inner.prepared()

/** What a model reads of a failure of this tool. */
export const failureText = (self: Any, failure: unknown): string => self.inner.failureText(failure)

// ---------------------------------------------------------------------------------------------------------------------
// Definition
// ---------------------------------------------------------------------------------------------------------------------

/** The Open Responses function tool: what a model reads, members in this order (C7). */
export interface Definition extends Canonical.Definition {}

/** The definition of a tool. No property but strict gets into it (C9). */
export const definition = (self: Any): Definition => ({
  type: "function",
  name: self.name,
  description: self.description,
  parameters: inputSchema(self),
  ...(self.properties.strict ? { strict: true } : {})
})

/** The schema of the arguments: that of a tool without arguments is always the empty object schema (C5). */
export const inputSchema = (self: Any): Schema.JsonObject => self.parameters ?? noArguments

// ---------------------------------------------------------------------------------------------------------------------
// Wrapping
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tool of which only the running differs (C73). Every property is handed on, and questions about a call are asked of
 * the wrapped tool.
 *
 * `exec` is called when the tool is wrapped, and again when the wrapper is built anew by {@link strict} or
 * {@link nullAsAbsent}: what it keeps between calls belongs to one tool. A result of its own for a tool with a `success`
 * schema has the value too, by `ToolResult.structured`. To give a tool services use {@link provide}, which gives them to
 * its claims as well.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Effect, Schema } from "effect"
 *
 * const slow = Tool.make("slow", {
 *   parameters: Schema.Struct({ seconds: Schema.Int }),
 *   execute: ({ seconds }) => Effect.as(Effect.sleep(`${seconds} seconds`), "done")
 * })
 *
 * const limited = slow.pipe(Tool.wrap((execute) => (call) => Effect.timeout(execute(call), "5 seconds")))
 * ```
 */
export const wrap: {
  <E, R, Args, A, E2, R2, A2>(
    exec: (execute: Execute<A, E | ToolError.ToolError, R>, tool: Tool<E, R, Args, A>) => Execute<A2, E2, R2>
  ): (self: Tool<E, R, Args, A>) => Tool<Exclude<E2, ToolError.ToolError>, R | R2, Args, A2>
  <E, R, Args, A, E2, R2, A2>(
    self: Tool<E, R, Args, A>,
    exec: (execute: Execute<A, E | ToolError.ToolError, R>, tool: Tool<E, R, Args, A>) => Execute<A2, E2, R2>
  ): Tool<Exclude<E2, ToolError.ToolError>, R | R2, Args, A2>
} = dual(
  2,
  <E, R, Args, A, E2, R2, A2>(
    self: Tool<E, R, Args, A>,
    exec: (execute: Execute<A, E | ToolError.ToolError, R>, tool: Tool<E, R, Args, A>) => Execute<A2, E2, R2>
  ): Tool<Exclude<E2, ToolError.ToolError>, R | R2, Args, A2> => {
    if (!isTool(self)) typed.nilTool("Tool.wrap")
    if (typeof exec !== "function") typed.nilFunction("Tool.wrap", self.name)
    return internal.wrap(self, exec)
  }
)

/** The tool that a wrapper wraps, one layer at a time; none of anything else (C76). */
export const unwrap = (self: unknown): Option.Option<Any> =>
  isTool(self) ? Option.fromUndefinedOr(self.inner.wrapped) : Option.none()

/**
 * Gives a tool, and its claims, what a layer builds. The layer is built for each call; to build it once, provide it where
 * the tool is served or run.
 */
export const provide: {
  <ROut, E2, RIn>(
    layer: Layer.Layer<ROut, E2, RIn>
  ): <E, R, Args, A>(self: Tool<E, R, Args, A>) => Tool<E | E2, Exclude<R, ROut> | RIn, Args, A>
  <E, R, Args, A, ROut, E2, RIn>(
    self: Tool<E, R, Args, A>,
    layer: Layer.Layer<ROut, E2, RIn>
  ): Tool<E | E2, Exclude<R, ROut> | RIn, Args, A>
} = dual(
  2,
  <E, R, Args, A, ROut, E2, RIn>(
    self: Tool<E, R, Args, A>,
    layer: Layer.Layer<ROut, E2, RIn>
  ): Tool<E | E2, Exclude<R, ROut> | RIn, Args, A> => mapEffects(self, (effect) => Effect.provide(effect, layer))
)

/** Gives a tool, and its claims, one service. */
export const provideService: {
  <I, S>(
    key: Context.Key<I, S>,
    service: S
  ): <E, R, Args, A>(self: Tool<E, R, Args, A>) => Tool<E, Exclude<R, I>, Args, A>
  <E, R, Args, A, I, S>(self: Tool<E, R, Args, A>, key: Context.Key<I, S>, service: S): Tool<E, Exclude<R, I>, Args, A>
} = dual(
  3,
  <E, R, Args, A, I, S>(
    self: Tool<E, R, Args, A>,
    key: Context.Key<I, S>,
    service: S
  ): Tool<E, Exclude<R, I>, Args, A> => mapEffects(self, (effect) => Effect.provideService(effect, key, service))
)

/**
 * Runs everything that a tool does, its calls and its claims, through one function: the base of {@link provide}.
 */
export const mapEffects = <E, R, Args, A, E2, R2>(
  self: Tool<E, R, Args, A>,
  f: <B, E1>(effect: Effect.Effect<B, E1, R>) => Effect.Effect<B, E1 | E2, R2>
): Tool<E | E2, R2, Args, A> => internal.mapEffects(self, f)

// ---------------------------------------------------------------------------------------------------------------------
// Properties: combinators and readers
// ---------------------------------------------------------------------------------------------------------------------

export * from "./internal/toolProperties.ts"
