/**
 * The check of a value against a JSON Schema that its author supplied (C191–C197): arguments of a tool with a schema of
 * its own, answers to a form.
 *
 * JSON Schema draft-07 and 2020-12, by `$schema`, however its address is spelt; without one, 2020-12. Formats are
 * checked. Nothing is fetched. A schema that a tool generates is checked by the tool itself, not here.
 *
 * Neither a schema nor a value can hang or crash it. Refused at {@link compile}: more than 256 levels of nesting, 100,000
 * values or 5,000 subschemas; a schema that refers to itself without looking deeper into the value; a `pattern` with a
 * backreference. Patterns run in time that grows with text × pattern. A check that would take more than ten million
 * steps, and a value too deep for the stack, is a value that does not fit, with words that say so.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Validator from "./internal/ajv.ts"
import { bounded, maxText, words } from "./internal/checkWords.ts"
import * as Text from "./internal/jsonSchemaText.ts"
import { oneLine } from "./ToolError.ts"

/** The schema cannot be read or resolved. `reason` is one line, with the path of the fault inside the schema. */
export class JsonSchemaError extends Schema.TaggedError<JsonSchemaError>()("JsonSchemaError", {
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

/**
 * A compiled schema.
 *
 * - `Checked`: `check` gives the validator's words in one line, or `undefined` when the value fits. The words begin with
 *   the path of the value (`list[0].name: `), if it is not the root; a missing member says `required`, an unknown one
 *   says `additional`, and both give its name (C195).
 * - `Unchecked`: a dialect that we do not know. The schema may be right, we cannot tell: whoever serves it says so once,
 *   in the log (C193).
 */
export type JsonSchemaCheck =
  | { readonly _tag: "Checked"; readonly check: (value: unknown) => string | undefined }
  | { readonly _tag: "Unchecked"; readonly dialect: string }

/**
 * Prepares a schema for checking. Takes a few milliseconds: done when a tool is registered, never per call (C192).
 *
 * @example
 * ```ts
 * import { JsonSchemaCheck } from "@agenttool/core"
 * import { Result } from "effect"
 *
 * const compiled = JsonSchemaCheck.compile({ type: "object", properties: { b: { type: "integer" } } })
 * if (Result.isSuccess(compiled) && compiled.success._tag === "Checked") {
 *   compiled.success.check({ b: "x" }) // "b: must be integer"
 * }
 * ```
 */
export const compile = (schema: Schema.JsonObject): Result.Result<JsonSchemaCheck, JsonSchemaError> => {
  const prepared = Text.prepare(schema)
  if (Result.isFailure(prepared)) return fail(prepared.failure)
  const known = prepared.success
  if (known._tag === "Unknown") return Result.succeed({ _tag: "Unchecked", dialect: known.dialect })
  const faults = Validator.schemaErrors(known.dialect, known.schema)
  if (faults.length > 0) return fail(words(known.schema, faults))
  const validator = Validator.compile(known)
  if (Result.isFailure(validator)) return fail(validator.failure)
  const validate = validator.success
  return Result.succeed({
    _tag: "Checked",
    check: (value) => {
      const misfit = validate(value)
      if (misfit === undefined) return undefined
      return misfit._tag === "GaveUp" ? misfit.reason : words(value, misfit.errors)
    }
  })
}

const fail = (reason: string): Result.Result<never, JsonSchemaError> =>
  Result.fail(new JsonSchemaError({ reason: bounded(oneLine(reason), maxText) }))
