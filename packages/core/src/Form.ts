/**
 * The form that a question asks the user to fill in: a flat object of texts, numbers, booleans, choices and lists of
 * choices (P40), because that is what an MCP client can show.
 *
 * {@link make} derives it from a `Schema.Struct`, with the decoder of the answers; {@link compile} judges a JSON Schema
 * that was written by hand. `Elicitor` asks.
 */
import * as Cache from "effect/Cache"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as FlatForm from "./internal/flatForm.ts"
import * as FormFields from "./internal/formFields.ts"
import * as JsonSchemaCheck from "./JsonSchemaCheck.ts"
import * as Question from "./Question.ts"
import { oneLine } from "./ToolError.ts"

const TypeId = "~@agenttool/core/Form"

/**
 * A form and the type of its answers.
 *
 * - `schema`: its JSON Schema, `{"type":"object","properties":…,"required":…}`.
 * - `decode`: an answer's content as a value. Fails as the asking does, with `elicitation answer: PATH: …`.
 */
export interface Form<out A> {
  readonly [TypeId]: typeof TypeId
  readonly schema: Schema.JsonObject
  readonly decode: (content: unknown) => Effect.Effect<A, Question.AskFailed>
}

/**
 * A schema that is no form. `path` is the place inside the schema, or the field; empty at the root.
 *
 * Text: `elicitation schema: PATH: REASON` (M49).
 */
export class FormError extends Schema.TaggedError<FormError>()("FormError", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `elicitation schema: ${this.path === "" ? "" : `${this.path}: `}${this.reason}`
  }
}

/** Whether a value is a form. */
export const isForm = (value: unknown): value is Form<unknown> =>
  typeof value === "object" && value !== null && TypeId in value

/**
 * The form of a struct. A field may be a text, a number, a boolean, a choice (`Schema.Literals`, {@link choice}), a list
 * of choices, or a date, a time or an address written as a text; optional or not. Anything else is a type error, and
 * what the types cannot see throws a {@link FormError} that names the field.
 *
 * The annotations `title`, `description`, `default` and `format` (`email`, `uri`, `date`, `date-time`) show in the form,
 * and so do checks that JSON Schema has a keyword for. The decoder enforces all checks; a format is only shown, unless
 * whoever asks checks answers against the form.
 *
 * @example
 * ```ts
 * import { Form } from "@agenttool/core"
 * import { Schema } from "effect"
 *
 * const contact = Form.make(
 *   Schema.Struct({
 *     email: Schema.String.annotate({ title: "E-mail", format: "email" }),
 *     updates: Schema.optionalKey(Schema.Boolean)
 *   })
 * )
 * ```
 */
export const make = <const F extends Schema.Struct.Fields>(
  schema: Schema.Struct<F> & Flat<F>
): Form<Schema.Struct.Type<F>> => Result.getOrThrow(fromStruct(schema))

/** The form of a struct, as {@link make} gives it, without throwing. */
export const fromStruct = <const F extends Schema.Struct.Fields>(
  schema: Schema.Struct<F>
): Result.Result<Form<Schema.Struct.Type<F>>, FormError> => {
  const known = memo.get(schema)
  // What is kept under a schema was made from it.
  if (known !== undefined) return known as Result.Result<Form<Schema.Struct.Type<F>>, FormError>
  const form = derive(schema)
  memo.set(schema, form)
  return form
}

// No state that anybody could see: a schema never changes, and its form is a function of it. It goes away with the schema.
const memo = new WeakMap<object, Result.Result<Form<unknown>, FormError>>()

const derive = <F extends Schema.Struct.Fields>(
  schema: Schema.Struct<F>
): Result.Result<Form<Schema.Struct.Type<F>>, FormError> =>
  Result.mapBoth(FormFields.formOf(schema.ast), {
    onFailure: (fault) => new FormError(fault),
    onSuccess: (form): Form<Schema.Struct.Type<F>> => ({ [TypeId]: TypeId, schema: form, decode: decoderOf(schema) })
  })

const decoderOf = <F extends Schema.Struct.Fields>(schema: Schema.Struct<F>): Form<Schema.Struct.Type<F>>["decode"] => {
  // `Flat` admits no field whose decoder needs services.
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(schema)) as (
    content: unknown
  ) => Effect.Effect<Schema.Struct.Type<F>, Schema.SchemaError>
  return (content) => Effect.mapError(decode(content), (error) => Question.unfitAnswer(issueWords(error.issue)))
}

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** The first fault, as `PATH: WORDS`. */
const issueWords = (issue: SchemaIssue.Issue): string => {
  const first = formatIssue(issue).issues[0]
  const path = (first?.path ?? []).reduce<string>((text, step) => {
    const key = typeof step === "object" ? step.key : step
    return typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`
  }, "")
  const words = oneLine(first?.message ?? "does not fit")
  return path === "" ? words : `${path}: ${words}`
}

/** One of a choice: what the answer says, and what people read. */
export interface Choice<out V extends string = string> {
  readonly value: V
  readonly title: string
}

/**
 * A field with a choice that shows titles.
 *
 * @example
 * ```ts
 * import { Form } from "@agenttool/core"
 * import { Schema } from "effect"
 *
 * const form = Form.make(
 *   Schema.Struct({
 *     priority: Form.choice([{ value: "low", title: "Some day" }, { value: "high", title: "Now" }])
 *   })
 * )
 * ```
 */
export const choice = <const V extends string>(choices: ReadonlyArray<Choice<V>>): Schema.Codec<V> =>
  Schema.Union(choices.map(({ title, value }) => Schema.Literal(value).annotate({ title })))

/** A field with any number of choices that show titles. Bounded by `Schema.isMinLength`, `Schema.isMaxLength`. */
export const choices = <const V extends string>(options: ReadonlyArray<Choice<V>>): Schema.$Array<Schema.Codec<V>> =>
  Schema.Array(choice(options))

/** A form that was written by hand, ready to check answers (M51). */
export interface Compiled {
  /** As its author wrote it: it goes out verbatim. */
  readonly schema: Schema.JsonObject
  /** The words about what does not fit, or `undefined`. For `Question.checkAnswer`. */
  readonly check: (content: unknown) => string | undefined
  /** A dialect that is not known here: nothing is checked, and whoever asks says so in the log. */
  readonly unchecked: string | undefined
}

/**
 * Prepares a form schema that was written by hand: it has to be a flat form (P40), and a JSON Schema that can be read and
 * resolved (M49). Keywords that say nothing about nesting are allowed, `enumNames` beside an `enum` among them.
 *
 * @example
 * ```ts
 * import { Form } from "@agenttool/core"
 *
 * Form.compile({ type: "object", properties: { address: { type: "object" } } })
 * // fails: elicitation schema: properties.address: an object inside a form is not allowed
 * ```
 */
export const compile = (schema: Schema.JsonObject): Result.Result<Compiled, FormError> => {
  const fault = FlatForm.faultOf(schema)
  if (fault !== undefined) return Result.fail(new FormError(fault))
  return Result.mapBoth(JsonSchemaCheck.compile(schema), {
    // The reason begins with its own path.
    onFailure: ({ reason }) => new FormError({ path: "", reason }),
    onSuccess: (compiled) =>
      compiled._tag === "Checked"
        ? { schema, check: compiled.check, unchecked: undefined }
        : { schema, check: () => undefined, unchecked: compiled.dialect }
  })
}

/** Whether a JSON Schema is a form that {@link compile} takes. */
export const checkFlat = (schema: Schema.JsonObject): Result.Result<void, FormError> =>
  Result.map(compile(schema), () => undefined)

/**
 * {@link compile}, with the last `capacity` forms kept by their text: a tool that writes its form where it asks makes a
 * new object in every call, and compiling one takes milliseconds.
 */
export const makeCompiler = (options: {
  readonly capacity: number
}): Effect.Effect<(schema: Schema.JsonObject) => Effect.Effect<Compiled, FormError>> =>
  Effect.map(
    Cache.make({
      capacity: options.capacity,
      lookup: (text: string) => Effect.fromResult(compileText(text))
    }),
    (cache) => (schema) =>
      Result.match(
        Result.try(() => JSON.stringify(schema)),
        {
          // Too deep or a cycle: no form either.
          onFailure: () => Effect.fromResult(compile(schema)),
          onSuccess: (text) => Effect.map(Cache.get(cache, text), (compiled) => ({ ...compiled, schema }))
        }
      )
  )

const compileText = (text: string): Result.Result<Compiled, FormError> => compile(JSON.parse(text))

/** No error for a struct whose fields all have a place in a form; else what the compiler shows, naming them. */
export type Flat<F extends Schema.Struct.Fields> = [Misplaced<F>] extends [never] ? unknown : NoForm<Misplaced<F>>

/** The compile-time error about fields that have no place in a form. */
export interface NoForm<Fields> {
  readonly "a form has fields of text, number, boolean, choice, list of choices, or date only": Fields
}

type Misplaced<F extends Schema.Struct.Fields> = {
  readonly [K in keyof F]: [F[K]["DecodingServices"]] extends [never]
    ? HasPlace<Exclude<F[K]["Encoded"], undefined>> extends true
      ? never
      : K
    : K
}[keyof F]

// Wrapped, so that a union is judged as a whole: `string | number` is neither.
type HasPlace<E> = [E] extends [string]
  ? true
  : [E] extends [number]
    ? [number] extends [E]
      ? true
      : false
    : [E] extends [boolean]
      ? [boolean] extends [E]
        ? true
        : false
      : [E] extends [Date]
        ? true
        : [E] extends [DateTime.Utc]
          ? true
          : [E] extends [ReadonlyArray<infer Item>]
            ? [Item] extends [string]
              ? [string] extends [Item]
                ? false
                : true
              : false
            : false
