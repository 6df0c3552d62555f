/**
 * The shape of a tool's arguments, as plain data: an ordered list of fields and their types (C161, C162).
 *
 * A shape is what a JSON Schema is written from, and what the tool's own check is compiled from, so that the two cannot
 * disagree. `WireSchema` reads one from an Effect Schema; written by hand it is an object literal. Nothing here looks at
 * a value: see `ArgumentsCheck`.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"

/**
 * Keywords of JSON Schema that narrow a type. They are shown outside strict, after all other members, in this order
 * (C165); the tool's own check does not look at them, the decoder enforces what they stand for.
 */
export interface Constraints {
  readonly minimum?: number | undefined
  readonly exclusiveMinimum?: number | undefined
  readonly maximum?: number | undefined
  readonly exclusiveMaximum?: number | undefined
  readonly multipleOf?: number | undefined
  readonly minLength?: number | undefined
  readonly maxLength?: number | undefined
  readonly pattern?: string | undefined
  readonly minItems?: number | undefined
  readonly maxItems?: number | undefined
  readonly uniqueItems?: true | undefined
  readonly minProperties?: number | undefined
  readonly maxProperties?: number | undefined
}

interface Described {
  readonly description?: string | undefined
  readonly constraints?: Constraints | undefined
}

export interface BooleanShape extends Described {
  readonly type: "boolean"
  readonly enum?: ReadonlyArray<boolean> | undefined
}

export interface NumberShape extends Described {
  readonly type: "integer" | "number"
  readonly enum?: ReadonlyArray<number> | undefined
}

/** `format: "date-time"` is a point in time, written as an ISO string. */
export interface StringShape extends Described {
  readonly type: "string"
  readonly format?: "date-time" | undefined
  readonly enum?: ReadonlyArray<string> | undefined
}

export interface AnyShape extends Described {
  readonly type: "any"
}

export interface ArrayShape extends Described {
  readonly type: "array"
  readonly items: Shape
}

/** Any string keys, all values of one type. */
export interface MapShape extends Described {
  readonly type: "map"
  readonly values: Shape
}

export interface ObjectShape extends Described {
  readonly type: "object"
  readonly fields: ReadonlyArray<Field>
}

/**
 * The type of a value.
 *
 * @example
 * ```ts
 * import { Shape } from "@agenttool/core"
 *
 * const shape: Shape.ObjectShape = {
 *   type: "object",
 *   fields: [
 *     { name: "path", type: "string", description: "Absolute path to read" },
 *     { name: "max_bytes", type: "integer", optional: true }
 *   ]
 * }
 *
 * Shape.toJsonSchema(shape) // {"type":"object","properties":{...},"required":["path"]}
 * ```
 */
export type Shape = BooleanShape | NumberShape | StringShape | AnyShape | ArrayShape | MapShape | ObjectShape

/** A field of an object: it may be left out where it is `optional`, and be `null` where it is `nullable`. */
export type Field = Shape & {
  readonly name: string
  readonly optional?: boolean | undefined
  readonly nullable?: boolean | undefined
}

/** Why something is not a shape, and where: `list[].name`, `labels{}`, empty at the root. */
export interface Refusal {
  readonly path: string
  readonly reason: string
}

/**
 * - `strict`: every field is required, no object takes other members, nullability is shown (C169). Default false.
 * - `nulls`: shows nullability although it is not strict. For what a tool returns, where a `null` is not a mistake of a
 *   model but a value that the reader has to expect. Default false.
 */
export interface Options {
  readonly strict?: boolean | undefined
  readonly nulls?: boolean | undefined
}

/** The path of a field below `path`. */
export const fieldPath = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`)

/** The path of the items of the array at `path`. */
export const itemsPath = (path: string): string => `${path}[]`

/** The path of the values of the map at `path`. */
export const valuesPath = (path: string): string => `${path}{}`

/**
 * The JSON Schema of a shape, with the members in the order of the contract (C164–C171). There is never a `$ref`.
 *
 * Fails where the shape has no such schema: it contains itself, an enum value is not of its type, a map is under strict,
 * or, in data that no compiler has seen, there is an unknown type or an array without items (C172).
 *
 * Names that look like an array index come first in `properties` whatever the order of the fields, as in every object of
 * JavaScript; `required` keeps the order.
 */
export const toJsonSchema = (shape: Shape, options?: Options): Result.Result<Schema.JsonObject, Refusal> =>
  schemaOf(shape, { strict: options?.strict === true, nulls: options?.nulls === true }, false, "", [])

interface Mode {
  readonly strict: boolean
  readonly nulls: boolean
}

type Members = Array<readonly [string, Schema.Json]>

const schemaOf = (
  shape: Shape,
  mode: Mode,
  nullable: boolean,
  path: string,
  around: ReadonlyArray<Shape>
): Result.Result<Schema.JsonObject, Refusal> => {
  if (around.includes(shape)) return refuse(path, "recursive: a shape must not contain itself")
  const inside = inner(shape, mode, path, [...around, shape])
  if (Result.isFailure(inside)) return Result.fail(inside.failure)
  const values = enumOf(shape, path)
  if (Result.isFailure(values)) return Result.fail(values.failure)
  const orNull = nullable && (mode.strict || mode.nulls)
  const members: Members = []
  const type = shape.type === "map" ? "object" : shape.type
  if (type !== "any") members.push(["type", orNull ? [type, "null"] : type])
  if (shape.description !== undefined && shape.description !== "") members.push(["description", shape.description])
  if (shape.type === "string" && shape.format !== undefined) members.push(["format", shape.format])
  if (values.success !== undefined) members.push(["enum", orNull ? [...values.success, null] : values.success])
  members.push(...inside.success)
  if (!mode.strict && shape.constraints !== undefined) members.push(...keywordsOf(shape.constraints))
  return Result.succeed(Object.fromEntries(members))
}

/** The members that describe what is inside: `properties`, `required`, `items`, `additionalProperties`. */
const inner = (
  shape: Shape,
  mode: Mode,
  path: string,
  around: ReadonlyArray<Shape>
): Result.Result<Members, Refusal> => {
  switch (shape.type) {
    case "boolean":
    case "integer":
    case "number":
    case "string":
    case "any":
      return Result.succeed([])
    case "array": {
      if (!isShape(shape.items)) return refuse(path, "unsupported type: an array without an item type")
      return Result.map(schemaOf(shape.items, mode, false, itemsPath(path), around), (items) => [["items", items]])
    }
    case "map": {
      if (mode.strict) return refuse(path, "maps cannot be expressed in a strict schema")
      if (!isShape(shape.values)) return refuse(path, "unsupported type: a map without a value type")
      return Result.map(schemaOf(shape.values, mode, false, valuesPath(path), around), (values) => [
        ["additionalProperties", values]
      ])
    }
    case "object":
      return objectMembers(shape, mode, path, around)
    default:
      return refuse(path, `unsupported type: ${typeName(shape)}`)
  }
}

const objectMembers = (
  shape: ObjectShape,
  mode: Mode,
  path: string,
  around: ReadonlyArray<Shape>
): Result.Result<Members, Refusal> => {
  if (!Array.isArray(shape.fields)) return refuse(path, "unsupported type: an object without fields")
  const properties: Members = []
  const required: Array<string> = []
  for (const field of shape.fields) {
    if (properties.some(([name]) => name === field.name)) return refuse(path, `two fields have the name ${field.name}`)
    const schema = schemaOf(field, mode, field.nullable === true, fieldPath(path, field.name), around)
    if (Result.isFailure(schema)) return Result.fail(schema.failure)
    properties.push([field.name, schema.success])
    if (mode.strict || field.optional !== true) required.push(field.name)
  }
  const members: Members = [
    // `fromEntries` defines members, so that a field named `__proto__` is one too.
    ["properties", Object.fromEntries(properties)],
    ["required", required]
  ]
  if (mode.strict) members.push(["additionalProperties", false])
  return Result.succeed(members)
}

/** The enum of a shape, if it has one, once it is sure that its values are of the shape's type (C171). */
const enumOf = (shape: Shape, path: string): Result.Result<ReadonlyArray<Schema.Json> | undefined, Refusal> => {
  const values: unknown = "enum" in shape ? shape.enum : undefined
  if (values === undefined) return Result.succeed(undefined)
  if (!Array.isArray(values) || values.length === 0) return refuse(path, "enum values must be a list that is not empty")
  const fits = enumMember(shape)
  if (fits === undefined) return refuse(path, `enum values cannot be given for type ${typeName(shape)}`)
  const wrong = values.findIndex((value) => !fits(value))
  return wrong === -1
    ? Result.succeed(values)
    : refuse(path, `enum value ${String(JSON.stringify(values[wrong]))} is not of type ${typeName(shape)}`)
}

const enumMember = (shape: Shape): ((value: unknown) => value is Schema.Json) | undefined => {
  switch (shape.type) {
    case "boolean":
      return (value): value is boolean => typeof value === "boolean"
    case "string":
      return (value): value is string => typeof value === "string"
    case "integer":
      return (value): value is number => Number.isInteger(value)
    case "number":
      return (value): value is number => Number.isFinite(value)
    default:
      return undefined
  }
}

const keywordsOf = (constraints: Constraints): Members =>
  keywords.flatMap((keyword) => {
    const value = constraints[keyword]
    return value === undefined ? [] : [[keyword, value] as const]
  })

/** The keywords in the order in which they are shown. */
const keywords = [
  "minimum",
  "exclusiveMinimum",
  "maximum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties"
] as const satisfies ReadonlyArray<keyof Constraints>

// A shape that was read from data may hold anything where the types promise a shape.
const isShape = (value: unknown): boolean => typeof value === "object" && value !== null

const typeName = (shape: { readonly type?: unknown }): string => String(shape.type)

const refuse = (path: string, reason: string): Result.Result<never, Refusal> => Result.fail({ path, reason })
