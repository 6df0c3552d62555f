/**
 * Typed tools: a schema generated at construction, a check and a decoder made once, a function.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ArgumentsCheck from "../ArgumentsCheck.ts"
import * as Properties from "../Properties.ts"
import * as Shape from "../Shape.ts"
import type { Any } from "../Tool.ts"
import type * as ToolCall from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import * as ToolResult from "../ToolResult.ts"
import * as WireSchema from "../WireSchema.ts"
import * as internal from "./tool.ts"

/** A schema of arguments: decoding it needs no services. */
export type Parameters = Schema.ConstraintCodec<unknown, unknown>
export type Success = Schema.ConstraintCodec<unknown, unknown>
export type Failure = Schema.ConstraintCodec<unknown, unknown>

export const NoParameters = Schema.Struct({})
export const AnyFailure = Schema.Unknown

export interface Options {
  readonly description?: string | undefined
  readonly parameters?: Parameters | undefined
  readonly jsonSchema?: Schema.JsonObject | undefined
  readonly check?: boolean | undefined
  readonly success?: Success | undefined
  readonly failure?: Failure | undefined
  // The public overloads tie the function's types to the schemas; here they are only called.
  readonly execute: (parameters: never) => Effect.Effect<unknown, unknown, unknown>
}

const maker = "Tool.make"

const refuse = (tool: string, path: string, reason: string): never => {
  throw new ToolError.ToolBuildError({ constructor: maker, tool, path, reason })
}

/** A missing function is a fault of the program: it fails where the tool is built. */
export const nilFunction = (constructorName: string, tool: string): never => {
  throw new ToolError.ToolBuildError({ constructor: constructorName, tool, path: "", reason: "nil function" })
}

export const nilTool = (constructorName: string): never => {
  throw new ToolError.ToolBuildError({ constructor: constructorName, tool: "", path: "", reason: "nil tool" })
}

/** What an untyped function returned, as a result without a typed value. */
export const untypedResult = (
  returned: unknown
): Exit.Exit<ToolResult.ToolResult<never>, ToolError.ResultNotEncodable> =>
  // A result that a function built carries no typed value: only a `success` schema makes one.
  ToolResult.from(returned) as Exit.Exit<ToolResult.ToolResult<never>, ToolError.ResultNotEncodable>

export const make = (name: string, options: Options): Any => {
  if (typeof options.execute !== "function") nilFunction(maker, name)
  const shape = shapeOf(name, options)
  const build = (how: internal.Build): Any => {
    const parameters = schemaOf(name, options, shape, how)
    const check: internal.Check = options.check === false ? "none" : shape === undefined ? "supplied" : "own"
    return internal.fromFields({
      name,
      description: options.description ?? "",
      parameters,
      success: outputSchema(name, options.success),
      properties: { ...Properties.defaults, strict: how.strict },
      execute: executeOf(options, shape, check, how),
      inner: {
        check,
        shape,
        rebuild: build,
        build: how,
        wrapped: undefined,
        rewrap: undefined,
        failureText: failureTextOf(options.failure),
        prepared: internal.preparedFor(check, parameters)
      }
    })
  }
  return build(internal.plainly)
}

const shapeOf = (name: string, options: Options): Shape.ObjectShape | undefined => {
  if (options.jsonSchema !== undefined) return undefined
  if (options.parameters !== undefined && !Schema.isSchema(options.parameters)) {
    return refuse(name, "", "parameters must be a Schema: wrap the fields in Schema.Struct({ … })")
  }
  const made = WireSchema.fromSchema(options.parameters ?? NoParameters)
  return Result.isFailure(made) ? refuse(name, made.failure.path, made.failure.reason) : made.success
}

const schemaOf = (
  name: string,
  options: Options,
  shape: Shape.ObjectShape | undefined,
  how: internal.Build
): Schema.JsonObject | undefined => {
  if (shape === undefined) return options.jsonSchema
  if (options.parameters === undefined && !how.strict) return undefined
  const made = Shape.toJsonSchema(shape, { strict: how.strict })
  return Result.isFailure(made) ? refuse(name, made.failure.path, made.failure.reason) : made.success
}

const outputSchema = (name: string, success: Success | undefined): Schema.JsonObject | undefined => {
  if (success === undefined) return undefined
  const made = WireSchema.anyFromSchema(success)
  return Result.isFailure(made) ? refuse(name, inSuccess(made.failure.path), made.failure.reason) : made.success
}

// Items and values of the root have no name to put a point before.
const inSuccess = (path: string): string =>
  path === "" || path.startsWith("[]") || path.startsWith("{}") ? `success${path}` : Shape.fieldPath("success", path)

type Decode = (value: unknown) => Effect.Effect<unknown, Schema.SchemaError>

const executeOf = (
  options: Options,
  shape: Shape.ObjectShape | undefined,
  check: internal.Check,
  how: internal.Build
): Any["execute"] => {
  const fault =
    check === "own" && shape !== undefined ? ArgumentsCheck.make(shape, { strict: how.strict }) : mustBeObject
  // Under strict no field may be left out: a `null` is either in the schema or a fault.
  const clean = how.nullAsAbsent && !how.strict && shape !== undefined ? ArgumentsCheck.nullAsAbsent(shape) : undefined
  const decode: Decode = Schema.decodeUnknownEffect(Schema.toCodecJson(options.parameters ?? NoParameters))
  const toResult = resultOf(options.success)
  // Checked by the public overloads; see `Options`.
  const body = options.execute as (parameters: unknown) => Effect.Effect<unknown, unknown, unknown>
  const start = (parameters: unknown) => {
    const running = body(parameters)
    return isSuccess(running) ? toResult(running.value) : Effect.flatMap(running, toResult)
  }
  return (call: ToolCall.Call) => {
    const parsed = call.value === undefined ? ArgumentsCheck.parse(call.arguments) : Result.succeed(call.value.json)
    if (Result.isFailure(parsed)) return Effect.fail(parsed.failure)
    const value = clean === undefined ? parsed.success : clean(parsed.success)
    const found = fault(value, call.value === undefined ? call.arguments : undefined)
    if (found !== undefined) return Effect.fail(found)
    const decoded = decode(value)
    // Most schemas decode at once: no effect is run for them.
    if (isSuccess(decoded)) return start(decoded.value)
    return Effect.flatMap(Effect.mapError(decoded, ArgumentsCheck.fromSchemaError), start)
  }
}

const isSuccess = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Exit.Success<A, E> =>
  Exit.isExit(effect) && Exit.isSuccess(effect)

const notAnObject = new ToolError.InvalidArguments({ path: "", detail: "expected a JSON object" })

const mustBeObject = (value: unknown): ToolError.InvalidArguments | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? undefined : notAnObject

const resultOf = (
  success: Success | undefined
): ((returned: unknown) => Effect.Effect<ToolResult.ToolResult, ToolError.ResultNotEncodable>) => {
  if (success === undefined) return ToolResult.from
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(success))
  return (returned) => {
    const encoded = encode(returned)
    return isSuccess(encoded)
      ? Exit.succeed(ToolResult.structured(returned, encoded.value))
      : Effect.map(Effect.mapError(encoded, notEncodable), (json) => ToolResult.structured(returned, json))
  }
}

const notEncodable = (error: Schema.SchemaError): ToolError.ResultNotEncodable => {
  const fault = ArgumentsCheck.fromSchemaError(error)
  return new ToolError.ResultNotEncodable({
    reason: fault.path === "" ? fault.detail : `${fault.path}: ${fault.detail}`
  })
}

export const failureTextOf = (failure: Failure | undefined): ((failure: unknown) => string) => {
  if (failure === undefined) return ToolError.messageOf
  const encode = Schema.encodeUnknownExit(Schema.fromJsonString(Schema.toCodecJson(failure)))
  return (value) => {
    const message = ToolError.ownMessage(value)
    if (message !== undefined) return message
    const json = encode(value)
    return Exit.isSuccess(json) && typeof json.value === "string" ? json.value : ToolError.messageOf(value)
  }
}
