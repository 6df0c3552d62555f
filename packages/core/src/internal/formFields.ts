/**
 * The form of a struct: the JSON Schema of its encoded side, member by member, as far as MCP's flat forms go (P40).
 *
 * Says what the author wrote and no more: what a keyword cannot say is left to the decoder of the answer.
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Constraints from "./constraints.ts"
import type { Fault } from "./flatForm.ts"

/** The form of a struct, or the first field that has no place in one. */
export const formOf = (ast: SchemaAST.Objects): Result.Result<Schema.JsonObject, Fault> => {
  if (ast.indexSignatures.length > 0) return refuse("", "a form has named fields only")
  const properties: Array<readonly [string, Schema.JsonObject]> = []
  const required: Array<string> = []
  for (const { name, type } of ast.propertySignatures) {
    if (typeof name !== "string") return refuse(String(name), "a field is named by a text")
    const field = fieldOf(type)
    if (Result.isFailure(field)) return refuse(name, field.failure)
    properties.push([name, field.success])
    if (!SchemaAST.isOptional(SchemaAST.toEncoded(type))) required.push(name)
  }
  return Result.succeed({ type: "object", properties: Object.fromEntries(properties), required })
}

const refuse = (path: string, reason: string): Result.Result<never, Fault> => Result.fail({ path, reason })

type Field = Result.Result<Schema.JsonObject, string>

const fieldOf = (ast: SchemaAST.AST): Field => {
  const present = withoutUndefined(ast)
  if (Result.isFailure(present)) return Result.fail(present.failure)
  const inner = present.success
  const kind = representationOf(inner)
  if (kind === "effect/schema/Redacted") return Result.fail("secrets are not asked for by a form (P43)")
  const encoded = SchemaAST.toEncoded(SchemaAST.isDeclaration(SchemaAST.toEncoded(inner)) ? toJson(inner) : inner)
  return Result.map(bodyOf(encoded), ({ keywords, type }) => {
    const notes = { ...notesOf(encoded), ...notesOf(inner), ...ast.context?.annotations }
    const format = formats.find((known) => known === notes.format) ?? (kind === undefined ? undefined : formatOf[kind])
    return {
      type,
      ...text("title", notes.title),
      ...text("description", notes.description),
      ...(type === "string" && format !== undefined ? { format } : {}),
      ...keywords,
      ...defaultOf(inner, notes.default, format)
    }
  })
}

/** `Schema.optional` adds `undefined` to a field, which no answer can hold: the field is left out instead. */
const withoutUndefined = (ast: SchemaAST.AST): Result.Result<SchemaAST.AST, string> => {
  if (!SchemaAST.isUnion(ast)) return Result.succeed(ast)
  const [inner, ...others] = ast.types.filter((type) => !SchemaAST.isUndefined(type))
  if (inner === undefined || others.length + 1 === ast.types.length) return Result.succeed(ast)
  if (!SchemaAST.isOptional(ast)) return Result.fail("`undefined` has no JSON: make the field optional")
  return others.length === 0 ? Result.succeed(inner) : Result.fail("a field has one type")
}

const toJson = (ast: SchemaAST.AST): SchemaAST.AST => Schema.toCodecJson(Schema.make(ast)).ast

const formats = ["email", "uri", "date", "date-time"]

/** What people fill in for a value that is written as a text. */
const formatOf: { readonly [kind: string]: string } = {
  "effect/schema/Date": "date-time",
  "effect/schema/DateTimeUtc": "date-time",
  "effect/schema/URL": "uri"
}

const representationOf = (ast: SchemaAST.AST): string | undefined => {
  const representation = ast.annotations?.representation
  return Predicate.hasProperty(representation, "id") && typeof representation.id === "string"
    ? representation.id
    : undefined
}

interface Body {
  readonly type: "string" | "number" | "integer" | "boolean" | "array"
  readonly keywords: Schema.JsonObject
}

const bodyOf = (ast: SchemaAST.AST): Result.Result<Body, string> => {
  switch (ast._tag) {
    case "String":
      return Result.succeed({ type: "string", keywords: keywordsOf(ast, "string") })
    case "TemplateLiteral":
      return Result.succeed({ type: "string", keywords: {} })
    case "Number":
      return Result.succeed({
        type: Constraints.isInteger(ast.checks) ? "integer" : "number",
        keywords: keywordsOf(ast, "number")
      })
    case "Boolean":
      return Result.succeed({ type: "boolean", keywords: {} })
    case "Arrays":
      return listOf(ast)
    default: {
      const choices = choicesOf(ast)
      return choices === undefined || choices.length === 0
        ? Result.fail(whyNot(ast))
        : Result.succeed({
            type: "string",
            keywords: choices.some(hasTitle) ? { oneOf: choices.map(titled) } : { enum: choices.map(textOf) }
          })
    }
  }
}

const listOf = (ast: SchemaAST.Arrays): Result.Result<Body, string> => {
  const [item, ...others] = [...ast.elements, ...ast.rest]
  const choices = item === undefined ? undefined : choicesOf(item)
  // `NonEmptyArray` is one element and the rest, of one and the same schema.
  if (choices === undefined || ast.rest.length !== 1 || others.some((other) => other !== item)) {
    return Result.fail("a list in a form is a choice among given texts")
  }
  if (choices.length === 0) return Result.fail("there is nothing to choose from")
  const keywords = keywordsOf(ast, "array")
  const least = Math.max(ast.elements.length, typeof keywords.minItems === "number" ? keywords.minItems : 0)
  return Result.succeed({
    type: "array",
    keywords: {
      ...keywords,
      ...(least > 0 ? { minItems: least } : {}),
      items: choices.some(hasTitle) ? { anyOf: choices.map(titled) } : { type: "string", enum: choices.map(textOf) }
    }
  })
}

interface Choice {
  readonly value: string
  readonly title: string | undefined
}

const hasTitle = (choice: Choice): boolean => choice.title !== undefined
const textOf = (choice: Choice): string => choice.value
const titled = ({ title, value }: Choice): Schema.JsonObject => ({ const: value, title: title ?? value })

/** The texts that may be chosen; `undefined` where anything else may be, too. */
const choicesOf = (ast: SchemaAST.AST): ReadonlyArray<Choice> | undefined => {
  if (SchemaAST.isLiteral(ast)) {
    return typeof ast.literal === "string" ? [{ value: ast.literal, title: SchemaAST.resolveTitle(ast) }] : undefined
  }
  if (SchemaAST.isEnum(ast)) {
    const choices = ast.enums.flatMap(([name, value]) => (typeof value === "string" ? [{ value, title: name }] : []))
    return choices.length === ast.enums.length ? choices : undefined
  }
  if (!SchemaAST.isUnion(ast)) return undefined
  const all = ast.types.map(choicesOf)
  return all.every((choices) => choices !== undefined) ? all.flat() : undefined
}

const whyNot = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "Objects":
      return "an object inside a form is not allowed"
    case "Null":
      return "`null` is no answer: make the field optional"
    case "Union":
      if (ast.types.length === 0) return "there is nothing to choose from"
      return ast.types.some(SchemaAST.isNull)
        ? "`null` is no answer: make the field optional"
        : "a field has one type, or is a choice among given texts"
    case "Literal":
    case "Enum":
      return "a choice in a form is a text"
    default:
      return `${ast._tag.toLowerCase()} has no place in a form`
  }
}

const keywordsOf = (ast: SchemaAST.AST, type: "string" | "number" | "array"): Schema.JsonObject =>
  Object.fromEntries(
    Object.entries(Constraints.fromChecks(ast.checks, type) ?? {}).flatMap(([keyword, value]) =>
      value === undefined ? [] : [[keyword, value]]
    )
  )

/** All annotations of a schema: those that stand after a check are kept with it. */
const notesOf = (ast: SchemaAST.AST): Schema.Annotations.Annotations =>
  Object.assign({}, ast.annotations, ...(ast.checks ?? []).map((check) => check.annotations))

const text = (keyword: "title" | "description", value: unknown): Schema.JsonObject =>
  typeof value === "string" && value !== "" ? { [keyword]: value } : {}

/** The default is a value of the type; a form shows it as it is written in an answer. */
const defaultOf = (ast: SchemaAST.AST, value: unknown, format: string | undefined): Schema.JsonObject => {
  if (value === undefined) return {}
  const encoded = Schema.encodeUnknownOption(Schema.make<Schema.Codec<unknown, Schema.Json>>(toJson(ast)))(value)
  return Option.match(encoded, {
    onNone: () => ({}),
    // A `Date` is written with its time, also where only its day is asked for.
    onSome: (json) => ({ default: format === "date" && typeof json === "string" ? json.slice(0, 10) : json })
  })
}
