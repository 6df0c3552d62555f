/**
 * What a tool and a tool of effect/ai say of themselves, and how a call of one of theirs runs as one of ours.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as Ai from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as ArgumentsCheck from "../ArgumentsCheck.ts"
import * as Elicitor from "../Elicitor.ts"
import * as Progress from "../Progress.ts"
import * as Properties from "../Properties.ts"
import type * as Tool from "../Tool.ts"
import type * as ToolCall from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import * as ToolResult from "../ToolResult.ts"
import * as aiParts from "./aiParts.ts"
import * as internal from "./tool.ts"
import { type Failure, failureTextOf } from "./typedTool.ts"

// ----- annotations

/** What the annotations of ours are called there. Only what is stated is set: both sides have defaults for the rest. */
export const toAnnotations = (tool: Tool.Any): Context.Context<never> => {
  const stated = Properties.statedAnnotations(tool.properties.annotations) ?? {}
  const set = <I, S>(key: Context.Key<I, S>, value: S | undefined) =>
    Context.addOrOmit(key, Option.fromUndefinedOr(value))
  return tool.properties.settings.pipe(
    Context.add(Ai.Strict, tool.properties.strict),
    set(Ai.Title, stated.title),
    set(Ai.Readonly, stated.readOnly),
    set(Ai.Destructive, stated.destructive),
    set(Ai.Idempotent, stated.idempotent),
    set(Ai.OpenWorld, stated.openWorld)
  ) as Context.Context<never> // annotations are kept in a context whose type says nothing of them
}

const propertiesOf = ({ annotations }: Ai.Any): Properties.Properties => ({
  ...Properties.defaults,
  strict: Context.get(annotations, Ai.Strict) === true,
  annotations: Properties.statedAnnotations({
    // Not their defaults, which would read as if the author had said so (C46).
    title: Context.getOrUndefined(annotations, Ai.Title),
    readOnly: Context.getOrUndefined(annotations, Ai.Readonly),
    destructive: Context.getOrUndefined(annotations, Ai.Destructive),
    idempotent: Context.getOrUndefined(annotations, Ai.Idempotent),
    openWorld: Context.getOrUndefined(annotations, Ai.OpenWorld)
  }),
  settings: annotations
})

// ----- schemas

const parametersOf = (tool: Ai.Any): Schema.JsonObject | undefined => {
  if (Ai.isDynamic(tool) && tool.jsonSchema !== undefined) return asJson(tool.jsonSchema)
  return takesNothing(tool.parametersSchema) ? undefined : objectRoot(asJson(Ai.getJsonSchema(tool)))
}

/** The schema of what a tool returns, where it says anything. */
const successOf = (tool: Ai.Any): Schema.JsonObject | undefined => {
  const schema = Result.try(() => asJson(Ai.getJsonSchemaFromSchema(tool.successSchema)))
  return Result.isFailure(schema) || Object.keys(schema.success).length === 0 || schema.success.type === "null"
    ? undefined
    : schema.success
}

// A JSON Schema is JSON: their type for it only does not say so.
const asJson = (schema: { readonly [member: string]: unknown }): Schema.JsonObject => schema as Schema.JsonObject

const takesNothing = (schema: Schema.Constraint): boolean => {
  const { ast } = schema
  return (
    SchemaAST.isObjects(ast) &&
    ast.propertySignatures.length === 0 &&
    ast.indexSignatures.every((signature) => SchemaAST.isNever(signature.type))
  )
}

/** The same schema with `type: "object"` at its root, which clients ask for: a reference there is followed. */
const objectRoot = (schema: Schema.JsonObject): Schema.JsonObject => {
  const { $defs, $ref, ...rest } = schema
  const name = typeof $ref === "string" && $ref.startsWith(definitions) ? $ref.slice(definitions.length) : undefined
  const referred = name !== undefined && isObject($defs) ? $defs[name] : undefined
  return {
    type: "object",
    ...(isObject(referred) ? referred : $ref === undefined ? rest : { $ref, ...rest }),
    ...($defs === undefined || (isObject(referred) && !refersTo($defs)) ? {} : { $defs })
  }
}

const definitions = "#/$defs/"

// A root that refers to nothing else needs no definitions: its own is in its place.
const refersTo = (defs: Schema.Json): boolean => JSON.stringify(defs).includes(`"${definitions}`)

const isObject = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  Predicate.isObject(value) && !Array.isArray(value)

// ----- calls

type Handle = (
  name: string,
  parameters: unknown,
  id: string
) => Effect.Effect<Stream.Stream<Ai.HandlerResult<Ai.Any>, unknown, unknown>, unknown, unknown>

/** A tool of theirs as one of ours, run by the `handle` of its toolkit. */
export const fromTool = (handle: unknown, tool: Ai.Any): Tool.Any => {
  const parameters = parametersOf(tool)
  // A raw schema is only shown by effect/ai: its check is the harness's, as for every supplied schema. Others are decoded.
  const check: internal.Check = Ai.isDynamic(tool) && tool.jsonSchema !== undefined ? "supplied" : "none"
  const success = successOf(tool)
  // Where encoding needs services it does not succeed here, and the failure's own text is taken.
  const failureText = failureTextOf(tool.failureSchema as unknown as Failure)
  // The same function, called with names and arguments that its types cannot know here.
  const run = runOf(handle as Handle, tool, success !== undefined)
  return internal.fromFields<unknown, unknown, never, unknown>({
    name: tool.name,
    description: Ai.getDescription(tool) ?? "",
    parameters,
    success,
    properties: propertiesOf(tool),
    execute: (call) => {
      const parsed = call.value === undefined ? ArgumentsCheck.parse(call.arguments) : Result.succeed(call.value.json)
      return Result.isFailure(parsed) ? Effect.fail(parsed.failure) : run(call, parsed.success)
    },
    inner: {
      check,
      shape: undefined,
      rebuild: undefined,
      build: internal.plainly,
      wrapped: undefined,
      rewrap: undefined,
      failureText: (failure) => (isDenied(failure) ? failure.reason : failureText(failure)),
      prepared: internal.preparedFor(check, parameters)
    }
  })
}

const runOf = (handle: Handle, tool: Ai.Any, structured: boolean) => {
  const toResult = (result: Ai.HandlerResult<Ai.Any>) => resultOf(result, structured)
  const approved = approvalOf(tool)
  return (call: ToolCall.Call, value: unknown): Effect.Effect<ToolResult.ToolResult, unknown, unknown> => {
    const results = Effect.suspend(() => handle(tool.name, value, call.id))
    return (approved === undefined ? results : Effect.andThen(approved(call, value), results)).pipe(
      Effect.flatMap(
        Stream.runFoldEffect(
          (): Ai.HandlerResult<Ai.Any> | undefined => undefined,
          (last, result) =>
            result.preliminary ? Effect.as(Progress.report(toResult(result)), last) : Effect.succeed(result)
        )
      ),
      Effect.matchCauseEffect({
        onSuccess: (last) => {
          if (last === undefined) return Effect.die(new Error("the toolkit gave no result"))
          return last.isFailure
            ? Effect.flatMap(failureOf(tool, value, last.result, last.failureOrigin ?? "handler"), Effect.fail)
            : Effect.succeed(toResult(last))
        },
        onFailure: (cause) => {
          const failed = Cause.findErrorOption(cause)
          const origin = Context.get(Cause.annotations(cause), Toolkit.FailureOrigin)
          return Option.isNone(failed) || origin === "handler" || isDenied(failed.value)
            ? Effect.failCause(cause)
            : Effect.flatMap(failureOf(tool, value, failed.value, origin), Effect.fail)
        }
      })
    )
  }
}

type Denied = typeof Ai.ExecutionFailure.Type

const isDenied: (failure: unknown) => failure is Denied = Schema.is(Ai.ExecutionFailure)

/** Asks whether a call may run, for a tool that needs it: as a loop of effect/ai stops to have it asked. */
const approvalOf = (tool: Ai.Any) => {
  const { needsApproval } = tool
  if (needsApproval === undefined || needsApproval === false) return undefined
  const isNeeded = (call: ToolCall.Call, value: unknown): Effect.Effect<boolean, never, unknown> =>
    typeof needsApproval === "boolean"
      ? Effect.succeed(true)
      : Effect.matchEffect(Schema.decodeUnknownEffect(tool.parametersSchema)(value), {
          onSuccess: (parameters) => {
            const needed = needsApproval(parameters, { toolCallId: call.id, messages: [] })
            return Effect.isEffect(needed) ? needed : Effect.succeed(needed)
          },
          // The toolkit will refuse the same arguments: nothing runs.
          onFailure: () => Effect.succeed(false)
        })
  return (call: ToolCall.Call, value: unknown): Effect.Effect<void, Denied, unknown> =>
    Effect.flatMap(isNeeded(call, value), (needed) => (needed ? ask(call) : Effect.void))
}

const ask = (call: ToolCall.Call): Effect.Effect<void, Denied> =>
  Effect.matchEffect(Elicitor.ask({ message: `Run ${call.tool} with ${call.arguments}?` }), {
    onSuccess: ({ action }) =>
      action === "accept"
        ? Effect.void
        : denied(action === "decline" ? "the user declined the call" : "nobody approved the call"),
    onFailure: ({ message }) => denied(`approval could not be asked for: ${message}`)
  })

const denied = (reason: string): Effect.Effect<never, Denied> => Effect.fail({ type: "execution-denied", reason })

const resultOf = (result: Ai.HandlerResult<Ai.Any>, structured: boolean): ToolResult.ToolResult => {
  const json = result.encodedResult
  return {
    ...ToolResult.text(typeof json === "string" ? json : json === undefined ? "" : JSON.stringify(json)),
    ...(result.modelOutput === undefined ? {} : { output: aiParts.toOutput(result.modelOutput) }),
    value: result.result,
    // Encoded by the tool's own schema for a model to read: it is JSON, though its type does not say so.
    ...(structured && json !== undefined ? { structured: json as Schema.Json } : {})
  }
}

/** The failure as our tools have it: theirs of checking and encoding become ours, the handler's stays what it is. */
const failureOf = (
  tool: Ai.Any,
  value: unknown,
  failure: unknown,
  origin: Ai.FailureOrigin
): Effect.Effect<unknown, never, unknown> => {
  switch (origin) {
    case "handler":
      return Effect.succeed(failure)
    case "result":
      return Effect.succeed(new ToolError.ResultNotEncodable({ reason: ToolError.oneLine(reasonOf(failure)) }))
    case "parameters":
      // Their error has only a text. Decoding once more, now that it has failed, tells where.
      return Effect.match(Schema.decodeUnknownEffect(tool.parametersSchema)(value), {
        onFailure: ArgumentsCheck.fromSchemaError,
        onSuccess: () => new ToolError.InvalidArguments({ path: "", detail: ToolError.oneLine(reasonOf(failure)) })
      })
  }
}

const reasonOf = (failure: unknown): string => {
  const reason = AiError.isAiError(failure) ? failure.reason : failure
  return Predicate.hasProperty(reason, "description") && typeof reason.description === "string"
    ? reason.description
    : ToolError.messageOf(reason)
}
