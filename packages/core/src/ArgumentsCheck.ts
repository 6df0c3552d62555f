/**
 * A tool's own check of its arguments: the JSON text is parsed, and the value held against the shape (C177–C190).
 *
 * A check is compiled once per tool; where the arguments are right it allocates nothing. It looks at types, enums, required
 * and unknown members. It does not look at formats or at constraints such as a minimum: the decoder does, and its words
 * come out of {@link fromSchemaError} in the same form. Schemas that an author supplied are not checked here.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Shape from "./Shape.ts"
import * as ToolError from "./ToolError.ts"

/**
 * The value of a JSON text. No text is `{}` (C81).
 *
 * Fails with `invalid arguments: not valid JSON: ` and the words of the parser (C178).
 *
 * @example
 * ```ts
 * import { ArgumentsCheck } from "@agenttool/core"
 *
 * ArgumentsCheck.parse("") // Success {}
 * ArgumentsCheck.parse('{"a":1} x') // Failure "invalid arguments: not valid JSON: ..."
 * ```
 */
export const parse = (text: string): Result.Result<unknown, ToolError.InvalidArguments> =>
  text === ""
    ? Result.succeed({})
    : Result.try({
        try: (): unknown => JSON.parse(text),
        catch: (error) =>
          new ToolError.InvalidArguments({ path: "", detail: `not valid JSON: ${ToolError.defectValue(error)}` })
      })

/**
 * Compiles the check of a shape: a function that gives the first fault of a value, or `undefined`.
 *
 * Give it the text that the value was parsed from, and a number at fault is shown as it was written (C190).
 *
 * @example
 * ```ts
 * import { ArgumentsCheck } from "@agenttool/core"
 *
 * const check = ArgumentsCheck.make({ type: "object", fields: [{ name: "path", type: "string" }] })
 *
 * check({ path: "/x" }) // undefined
 * check({ path: 1 })?.message // "invalid arguments: path: expected string, got 1"
 * ```
 */
export const make = (
  shape: Shape.Shape,
  options?: { readonly strict?: boolean | undefined }
): ((value: unknown, text?: string) => ToolError.InvalidArguments | undefined) => {
  const check = compile(shape, options?.strict === true)
  return (value, text) => {
    const fault = check(value)
    if (fault === undefined) return undefined
    const segments = fault.inside.toReversed()
    const detail = fault.got === undefined ? fault.says : `${fault.says}${show(fault.got.value, segments, text)}`
    return new ToolError.InvalidArguments({ path: formatPath(segments), detail })
  }
}

/**
 * A path as the contract writes it: names joined by `.`, `[i]` for the elements of an array (C188).
 *
 * @example
 * ```ts
 * import { ArgumentsCheck } from "@agenttool/core"
 *
 * ArgumentsCheck.formatPath(["list", 0, "name"]) // "list[0].name"
 * ```
 */
export const formatPath = (segments: ReadonlyArray<PropertyKey>): string =>
  segments.reduce<string>(
    (path, segment) =>
      typeof segment === "number"
        ? `${path}[${segment}]`
        : path === ""
          ? String(segment)
          : `${path}.${String(segment)}`,
    ""
  )

/** What the decoder says after the check: its first issue, with the path in the same form and in one line (C107). */
export const fromSchemaError = (error: Schema.SchemaError): ToolError.InvalidArguments => {
  const [issue] = format(error.issue).issues
  return new ToolError.InvalidArguments({
    path: formatPath((issue?.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))),
    detail: ToolError.oneLine(issue?.message ?? error.message)
  })
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Compiles a function that leaves out every `null` of an optional field, nullable or not, at every depth, so that it reads
 * as absent. To be used before the check, outside strict: there no schema shows a `null`, and every optional field may be
 * left out (C168). A value without such a `null` is given back as it is.
 *
 * @example
 * ```ts
 * import { ArgumentsCheck } from "@agenttool/core"
 *
 * const clean = ArgumentsCheck.nullAsAbsent({
 *   type: "object",
 *   fields: [{ name: "limit", type: "integer", optional: true }]
 * })
 *
 * clean({ limit: null }) // {}
 * ```
 */
export const nullAsAbsent = (shape: Shape.Shape): ((value: unknown) => unknown) => compileClean(shape) ?? identity

// ---------------------------------------------------------------------------------------------------------------------
// The check
// ---------------------------------------------------------------------------------------------------------------------

/** What is wrong. `inside` grows on the way out, so it starts with the innermost segment. */
interface Fault {
  readonly says: string
  readonly got: { readonly value: unknown } | undefined
  readonly inside: Array<string | number>
}

type Check = (value: unknown) => Fault | undefined

const wrongType = (type: string, value: unknown): Fault => ({
  says: `expected ${type}, got `,
  got: { value },
  inside: []
})

const ofObject = (says: string): Fault => ({ says, got: undefined, inside: [] })

const within = (fault: Fault, segment: string | number): Fault => {
  fault.inside.push(segment)
  return fault
}

const compile = (shape: Shape.Shape, strict: boolean): Check => {
  switch (shape.type) {
    case "boolean":
      return primitive("boolean", (value) => typeof value === "boolean", shape.enum)
    case "string":
      return primitive("string", (value) => typeof value === "string", shape.enum)
    case "integer":
      // An infinity is a number too large for a double, such as 1e400; it is no integer.
      return primitive("integer", Number.isInteger, shape.enum)
    case "number":
      return primitive("number", Number.isFinite, shape.enum)
    case "any":
      return anything
    case "array":
      return arrayCheck(compile(shape.items, strict))
    case "map":
      return mapCheck(compile(shape.values, strict))
    case "object":
      return objectCheck(shape.fields, strict)
    default:
      return unknownType(shape)
  }
}

const anything: Check = () => undefined

/** Null, then enum, then type (C180). */
const primitive = (
  type: string,
  fits: (value: unknown) => boolean,
  values: ReadonlyArray<unknown> | undefined
): Check => {
  if (values === undefined) return (value) => (fits(value) ? undefined : wrongType(type, value))
  const allowed: ReadonlySet<unknown> = new Set(values)
  const says = `expected one of [${values.map((value) => JSON.stringify(value)).join(", ")}], got `
  return (value) => {
    if (value === null) return wrongType(type, value)
    if (!allowed.has(value)) return { says, got: { value }, inside: [] }
    return fits(value) ? undefined : wrongType(type, value)
  }
}

const arrayCheck = (check: Check): Check => {
  if (check === anything) return (value) => (Array.isArray(value) ? undefined : wrongType("array", value))
  return (value) => {
    if (!Array.isArray(value)) return wrongType("array", value)
    for (let index = 0; index < value.length; index++) {
      const fault = check(value[index])
      if (fault !== undefined) return within(fault, index)
    }
    return undefined
  }
}

const mapCheck = (check: Check): Check => {
  if (check === anything) return (value) => (isRecord(value) ? undefined : wrongType("object", value))
  return (value) => {
    if (!isRecord(value)) return wrongType("object", value)
    // The fault to report is that of the smallest name (C184); names are only compared once there is one.
    let first: Fault | undefined
    let at: string | undefined
    for (const name in value) {
      if (!has(value, name) || (at !== undefined && name > at)) continue
      const fault = check(value[name])
      if (fault === undefined) continue
      first = fault
      at = name
    }
    return first === undefined || at === undefined ? undefined : within(first, at)
  }
}

const objectCheck = (fields: ReadonlyArray<Shape.Field>, strict: boolean): Check => {
  const required = fields.filter((field) => strict || field.optional !== true).map((field) => field.name)
  const members = fields
    .map((field) => ({ name: field.name, check: fieldCheck(field, strict) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const known: ReadonlySet<string> = new Set(required)
  // By index: an iterator would be the only thing that a check allocates.
  return (value) => {
    if (!isRecord(value)) return wrongType("object", value)
    for (let index = 0; index < required.length; index++) {
      const name = required[index]!
      if (!has(value, name)) return ofObject(`missing required property ${ToolError.quote(name)}`)
    }
    const unknown = strict ? unknownMember(value, known) : undefined
    for (let index = 0; index < members.length; index++) {
      const { check, name } = members[index]!
      if (unknown !== undefined && unknown < name) break
      if (!has(value, name)) continue
      const fault = check(value[name])
      if (fault !== undefined) return within(fault, name)
    }
    return unknown === undefined ? undefined : ofObject(`unexpected property ${ToolError.quote(unknown)}`)
  }
}

/** A `null` is only in the schema under strict (C168, C169). */
const fieldCheck = (field: Shape.Field, strict: boolean): Check => {
  const check = compile(field, strict)
  return strict && field.nullable === true ? (value) => (value === null ? undefined : check(value)) : check
}

/** The unknown member whose name is the smallest. */
const unknownMember = (value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): string | undefined => {
  let smallest: string | undefined
  for (const name in value) {
    if (!known.has(name) && has(value, name) && (smallest === undefined || name < smallest)) smallest = name
  }
  return smallest
}

// The types know no other; a shape that was read from data may (C186).
const unknownType = (shape: { readonly type?: unknown }): Check => {
  const says = `schema type ${JSON.stringify(String(shape.type))} is not a JSON Schema type`
  return () => ofObject(says)
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// Own members only, so that `constructor` is no member of every object. An `undefined` has no JSON: it is not there.
const has = (value: Readonly<Record<string, unknown>>, name: string): boolean =>
  Object.hasOwn(value, name) && value[name] !== undefined

// ---------------------------------------------------------------------------------------------------------------------
// What a model reads of a value
// ---------------------------------------------------------------------------------------------------------------------

const show = (value: unknown, segments: ReadonlyArray<string | number>, text: string | undefined): string => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value)
    case "number":
      return (text === undefined ? undefined : writtenAt(text, segments)) ?? String(value)
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "array" : "object"
    default:
      return String(value)
  }
}

/** How the number at this path is written in the text; `undefined` where that cannot be found out. */
const writtenAt = (text: string, segments: ReadonlyArray<string | number>): string | undefined => {
  const sources = Result.try((): unknown =>
    JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) =>
      typeof value === "number" ? { source: context?.source } : value
    )
  )
  let at: unknown = Result.getOrUndefined(sources)
  for (const segment of [...segments, "source"]) {
    at =
      typeof segment === "number"
        ? Array.isArray(at)
          ? at[segment]
          : undefined
        : isRecord(at)
          ? at[segment]
          : undefined
  }
  return typeof at === "string" ? at : undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// Null as absent
// ---------------------------------------------------------------------------------------------------------------------

type Clean = (value: unknown) => unknown

const identity: Clean = (value) => value

/** `undefined` where there is nothing to leave out inside. */
const compileClean = (shape: Shape.Shape): Clean | undefined => {
  switch (shape.type) {
    case "array": {
      const clean = compileClean(shape.items)
      return clean === undefined ? undefined : (value) => (Array.isArray(value) ? mapOrSame(value, clean) : value)
    }
    case "map": {
      const clean = compileClean(shape.values)
      return clean === undefined ? undefined : (value) => (isRecord(value) ? rebuild(value, () => clean, none) : value)
    }
    case "object":
      return cleanObject(shape.fields)
    default:
      return undefined
  }
}

const none = (): boolean => false

const cleanObject = (fields: ReadonlyArray<Shape.Field>): Clean | undefined => {
  const dropped: ReadonlySet<string> = new Set(
    fields.filter((field) => field.optional === true).map((field) => field.name)
  )
  const inside = new Map<string, Clean>()
  for (const field of fields) {
    const clean = compileClean(field)
    if (clean !== undefined) inside.set(field.name, clean)
  }
  if (dropped.size === 0 && inside.size === 0) return undefined
  return (value) =>
    isRecord(value)
      ? rebuild(
          value,
          (name) => inside.get(name),
          (name) => dropped.has(name)
        )
      : value
}

/** The same object where nothing changes, else a copy. */
const rebuild = (
  value: Readonly<Record<string, unknown>>,
  cleanOf: (name: string) => Clean | undefined,
  isDropped: (name: string) => boolean
): unknown => {
  let changed = false
  const members: Array<readonly [string, unknown]> = []
  for (const name of Object.keys(value)) {
    const before = value[name]
    if (before === null && isDropped(name)) {
      changed = true
      continue
    }
    const after = (cleanOf(name) ?? identity)(before)
    changed ||= after !== before
    members.push([name, after])
  }
  // `fromEntries` defines members, so that one named `__proto__` stays one.
  return changed ? Object.fromEntries(members) : value
}

const mapOrSame = (values: ReadonlyArray<unknown>, clean: Clean): ReadonlyArray<unknown> => {
  const cleaned = values.map(clean)
  return cleaned.some((value, index) => value !== values[index]) ? cleaned : values
}
