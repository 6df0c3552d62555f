/**
 * Reads the shape of a tool's arguments from an Effect Schema.
 *
 * The shape is that of the JSON that `Schema.toCodecJson` decodes: the encoded side of every transformation, dates as ISO
 * strings, bytes as base64. What has no shape (C172) is refused here, when a tool is built, with the path to it; nothing
 * is left out or widened in silence, but for checks that have no keyword, which the decoder holds. Read `Shape` first.
 *
 * A nullable field that is not optional can be written in Effect: outside strict it is required and its `null` is not
 * shown, so a caller that sends `null` is refused (C168). Under strict a field that is optional and not nullable has to be
 * sent always (C170): make optional fields nullable there.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as constraints from "./internal/constraints.ts"
import * as Shape from "./Shape.ts"

/**
 * The shape of a tool's arguments. The root must be an object with fields, none of them also an object.
 *
 * A description at the root is dropped: it would say what the tool's own description says.
 *
 * @example
 * ```ts
 * import { Shape, WireSchema } from "@agenttool/core"
 * import { Result, Schema } from "effect"
 *
 * const shape = WireSchema.fromSchema(Schema.Struct({ path: Schema.String, lines: Schema.optionalKey(Schema.Int) }))
 *
 * Result.flatMap(shape, (shape) => Shape.toJsonSchema(shape))
 * // {"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"}},"required":["path"]}
 * ```
 */
export const fromSchema = (schema: Schema.Constraint): Result.Result<Shape.ObjectShape, Shape.Refusal> => {
  const side = encodedSide(schema.ast)
  if (side.ast._tag !== "Objects" || side.ast.indexSignatures.length > 0) {
    return refuse("", `arguments must be an object with fields, not ${nameOf(side.ast)}`)
  }
  return fieldsOf(side.ast, "", "arguments")
}

/**
 * The JSON Schema of what a tool returns: of any root, and with every `null` that may be there shown.
 *
 * @example
 * ```ts
 * import { WireSchema } from "@agenttool/core"
 * import { Schema } from "effect"
 *
 * WireSchema.anyFromSchema(Schema.Array(Schema.Finite)) // {"type":"array","items":{"type":"number"}}
 * ```
 */
export const anyFromSchema = (schema: Schema.Constraint): Result.Result<Schema.JsonObject, Shape.Refusal> =>
  Result.flatMap(elementOf(schema.ast, "", "output"), (shape) => Shape.toJsonSchema(shape, { nulls: true }))

/** What is written: a tool's output has a `null` wherever its codec writes one for an `undefined`. */
type Use = "arguments" | "output"

// ---------------------------------------------------------------------------------------------------------------------
// The encoded side
// ---------------------------------------------------------------------------------------------------------------------

interface Side {
  /** The node that describes the JSON. */
  readonly ast: SchemaAST.AST
  /** All nodes from the decoded side to that one: a description may be on any. */
  readonly passed: ReadonlyArray<SchemaAST.AST>
  readonly optional: boolean
  /** Whether the JSON is an ISO string of a point in time. */
  readonly instant: boolean
}

const encodedSide = (decoded: SchemaAST.AST): Side => {
  const passed = [decoded]
  let ast = decoded
  let optional: boolean | undefined
  let instant = false
  for (;;) {
    // The key belongs to the schema's own encoded side: what a declaration's codec adds below it knows of no key.
    if (ast.encoding === undefined) optional ??= SchemaAST.isOptional(ast)
    const links = ast.encoding ?? codecOf(ast)
    const last = links.at(-1)
    if (last === undefined) return { ast, passed, optional: optional ?? false, instant }
    passed.push(...links.map((link) => link.to))
    instant = instants.has(last.transformation)
    ast = last.to
  }
}

/** The links between a declaration (a date, bytes, a class of the author's) and its JSON. */
const codecOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.Link> => {
  const codec = codecAnnotation(ast)
  if (codec === undefined || !SchemaAST.isDeclaration(ast)) return []
  const link = codec(ast.typeParameters.map((parameter) => Schema.make(SchemaAST.toEncoded(parameter))))
  return link === undefined ? [] : [link]
}

type Codec = (typeParameters: ReadonlyArray<Schema.Constraint>) => SchemaAST.Link | undefined

const codecAnnotation = (ast: SchemaAST.AST): Codec | undefined => {
  const codec = ast.annotations?.toCodecJson ?? ast.annotations?.toCodec
  // Effect types both annotations of a declaration as this function; the node has forgotten it.
  return Predicate.isFunction(codec) ? (codec as Codec) : undefined
}

// How Effect writes a point in time as an ISO string. Other strings that become dates (HTTP dates, zoned) are not RFC 3339.
const instants: ReadonlySet<unknown> = new Set(
  [Schema.DateFromString, Schema.DateTimeUtcFromString].map((schema) => schema.ast.encoding?.at(-1)?.transformation)
)

// ---------------------------------------------------------------------------------------------------------------------
// Shapes
// ---------------------------------------------------------------------------------------------------------------------

interface Slot {
  readonly shape: Shape.Shape
  readonly optional: boolean
  readonly nullable: boolean
}

/** A field's value, apart from whether it may be left out or be `null`. */
const slotOf = (ast: SchemaAST.AST, path: string, use: Use): Result.Result<Slot, Shape.Refusal> => {
  const side = encodedSide(ast)
  const members = membersOf(side)
  const isNull = members.some((member) => SchemaAST.isNull(member.ast))
  const isUndefined = members.some((member) => SchemaAST.isUndefined(member.ast))
  const values = members.filter((member) => !SchemaAST.isNull(member.ast) && !SchemaAST.isUndefined(member.ast))
  // An `undefined` has no JSON: in arguments the field is left out. Where it must be there, and in what the codec writes,
  // it is `null`.
  const nullable = isNull || (isUndefined && (use === "output" || !side.optional))
  return Result.map(shapeOf(values, path, use), (shape) => ({ shape, optional: side.optional, nullable }))
}

/** An item, a map's value or a root: neither may be `null` (C161). */
const elementOf = (ast: SchemaAST.AST, path: string, use: Use): Result.Result<Shape.Shape, Shape.Refusal> =>
  Result.flatMap(slotOf(ast, path, use), (slot) =>
    slot.nullable ? refuse(path, "unsupported type: only a field may be nullable") : Result.succeed(slot.shape)
  )

/** The members of a union, unions inside it taken apart; of anything else, itself. */
const membersOf = (side: Side): ReadonlyArray<Side> =>
  SchemaAST.isUnion(side.ast)
    ? side.ast.types.flatMap((type) => {
        const member = encodedSide(type)
        return membersOf({ ...member, passed: [...side.passed, ...member.passed] })
      })
    : [side]

const shapeOf = (sides: ReadonlyArray<Side>, path: string, use: Use): Result.Result<Shape.Shape, Shape.Refusal> => {
  const [side, ...others] = sides
  if (side === undefined) return refuse(path, "unsupported type: null")
  const description = descriptionOf(side.passed)
  const shape = sides.every((one) => SchemaAST.isLiteral(one.ast) || SchemaAST.isEnum(one.ast))
    ? enumOf(
        sides.flatMap((one) => literalsOf(one.ast)),
        path
      )
    : others.length === 0
      ? plainShape(side, path, use)
      : refuse(path, `unsupported type: a union of ${sides.map((one) => nameOf(one.ast)).join(" and ")}`)
  return description === undefined ? shape : Result.map(shape, (shape) => ({ ...shape, description }))
}

const plainShape = (side: Side, path: string, use: Use): Result.Result<Shape.Shape, Shape.Refusal> => {
  const { ast } = side
  switch (ast._tag) {
    case "Boolean":
      return Result.succeed({ type: "boolean" })
    case "String":
      return Result.succeed(
        constrained(
          side.instant || SchemaAST.resolveAt<unknown>("format")(ast) === "date-time"
            ? { type: "string", format: "date-time" }
            : { type: "string" },
          constraints.fromChecks(ast.checks, "string")
        )
      )
    case "Number":
      return Result.succeed(
        constrained(
          { type: constraints.isInteger(ast.checks) ? "integer" : "number" },
          constraints.fromChecks(ast.checks, "number")
        )
      )
    case "Unknown":
    case "Any":
      return Result.succeed({ type: "any" })
    case "Arrays":
      return arrayOf(ast, path, use)
    case "Objects":
      return ast.indexSignatures.length === 0 ? fieldsOf(ast, path, use) : mapOf(ast, path, use)
    case "Suspend":
      return refuse(path, "recursive: no $ref is ever made; a schema that contains itself is for Tool.raw")
    case "Declaration":
      // A codec that adds nothing says that the value is JSON already.
      if (codecAnnotation(ast) !== undefined) return Result.succeed({ type: "any" })
  }
  return refuse(path, `unsupported type: ${nameOf(ast)}`)
}

const constrained = (shape: Shape.Shape, constraints: Shape.Constraints | undefined): Shape.Shape =>
  constraints === undefined ? shape : { ...shape, constraints }

const arrayOf = (ast: SchemaAST.Arrays, path: string, use: Use): Result.Result<Shape.Shape, Shape.Refusal> => {
  const [item, ...others] = ast.rest
  // An array that is not empty is a tuple whose first elements are the rest.
  if (item === undefined || others.length > 0 || ast.elements.some((element) => element !== item)) {
    return refuse(path, "unsupported type: a tuple")
  }
  const checked = constraints.fromChecks(encodedChecks(ast), "array")
  const atLeast = Math.max(ast.elements.length, checked?.minItems ?? 0)
  return Result.map(elementOf(item, Shape.itemsPath(path), use), (items) =>
    constrained({ type: "array", items }, ast.elements.length > 0 ? { ...checked, minItems: atLeast } : checked)
  )
}

const mapOf = (ast: SchemaAST.Objects, path: string, use: Use): Result.Result<Shape.Shape, Shape.Refusal> => {
  const [index, ...others] = ast.indexSignatures
  if (index === undefined || others.length > 0 || ast.propertySignatures.length > 0) {
    return refuse(path, "unsupported type: an object with fields and with other members of a type")
  }
  const key = encodedSide(index.parameter).ast
  if (!SchemaAST.isString(key)) return refuse(path, "map key must be a string")
  // Where not every key is taken, the decoder drops members: what it counts is not what is in the JSON.
  const checked = key.checks === undefined ? constraints.fromChecks(encodedChecks(ast), "object") : undefined
  return Result.map(elementOf(index.type, Shape.valuesPath(path), use), (values) =>
    constrained({ type: "map", values }, checked)
  )
}

const fieldsOf = (ast: SchemaAST.Objects, path: string, use: Use): Result.Result<Shape.ObjectShape, Shape.Refusal> => {
  const fields: Array<Shape.Field> = []
  for (const { name, type } of ast.propertySignatures) {
    if (typeof name !== "string") return refuse(path, "unsupported type: a member whose name is not a string")
    const slot = slotOf(type, Shape.fieldPath(path, name), use)
    if (Result.isFailure(slot)) return Result.fail(slot.failure)
    const { nullable, optional, shape } = slot.success
    fields.push({ name, ...shape, ...(optional ? { optional } : {}), ...(nullable ? { nullable } : {}) })
  }
  return Result.succeed({ type: "object", fields })
}

/** Checks of a container stand on its decoded side; of these the encoded side keeps what is true of the JSON as well. */
const encodedChecks = (ast: SchemaAST.AST): SchemaAST.Checks | undefined => SchemaAST.toEncoded(ast).checks

// ---------------------------------------------------------------------------------------------------------------------
// Enums, descriptions, names
// ---------------------------------------------------------------------------------------------------------------------

const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.LiteralValue> =>
  SchemaAST.isLiteral(ast) ? [ast.literal] : SchemaAST.isEnum(ast) ? ast.enums.map(([, value]) => value) : []

const enumOf = (
  literals: ReadonlyArray<SchemaAST.LiteralValue>,
  path: string
): Result.Result<Shape.Shape, Shape.Refusal> => {
  const values = [...new Set(literals)]
  if (values.every(Predicate.isString)) return Result.succeed({ type: "string", enum: values })
  if (values.every(Predicate.isBoolean)) return Result.succeed({ type: "boolean", enum: values })
  if (values.every(Predicate.isNumber)) {
    return Result.succeed({ type: values.every(Number.isInteger) ? "integer" : "number", enum: values })
  }
  const types = [...new Set(values.map((value) => typeof value))]
  return refuse(path, `unsupported type: enum values of type ${types.join(" and ")}`)
}

/** What the author says of the field, else of its schema; the decoded side first, where most is written. */
const descriptionOf = (passed: ReadonlyArray<SchemaAST.AST>): string | undefined =>
  passed.map((ast) => text(ast.context?.annotations?.description)).find(Predicate.isNotUndefined) ??
  passed
    .flatMap(annotationsOf)
    .map((annotations) => text(annotations?.description))
    .find(Predicate.isNotUndefined)

/** Annotations made after a check belong to the check. */
const annotationsOf = (ast: SchemaAST.AST): ReadonlyArray<Schema.Annotations.Annotations | undefined> => [
  ...(ast.checks ?? []).map((check) => check.annotations).reverse(),
  ast.annotations
]

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const nameOf = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "Arrays":
      return "an array"
    case "Objects":
      return ast.indexSignatures.length === 0 ? "an object" : "a map"
    case "Union":
      return "a union"
    case "TemplateLiteral":
      return "a template literal"
    case "Suspend":
      return "a suspended schema"
    case "Declaration":
      return `a declaration without a JSON codec${declared(ast)}`
    case "Literal":
    case "Enum":
      return "literals"
    case "UniqueSymbol":
      return "symbol"
    case "ObjectKeyword":
      return "any object"
    default:
      return ast._tag.toLowerCase()
  }
}

const declared = (ast: SchemaAST.AST): string => {
  const name = SchemaAST.resolveIdentifier(ast) ?? text(ast.annotations?.expected)
  return name === undefined ? "" : ` (${name})`
}

const refuse = (path: string, reason: string): Result.Result<never, Shape.Refusal> => Result.fail({ path, reason })
