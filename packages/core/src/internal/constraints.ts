/**
 * The checks of an encoded schema, as the keywords of JSON Schema that mean the same.
 *
 * A keyword is only made where it never refuses what the decoder accepts: a client may check arguments against the schema
 * and must not be stopped by it. What has no such keyword is left to the decoder. Effect's own translation of its checks
 * keeps to that (a length in UTF-16 units becomes the weaker bound in code points: exact for 0 and 1, half for others),
 * so it is used; two things are added here: patterns without the flag `u`, and which bound wins where there are several.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as SchemaAST from "effect/SchemaAST"
import type * as Shape from "../Shape.ts"
import * as pattern from "./pattern.ts"

type Checks = ReadonlyArray<SchemaAST.Check<never>> | undefined
type Check = SchemaAST.Check<never>
type Type = "string" | "number" | "array" | "object"
type Bound = Exclude<keyof Shape.Constraints, "pattern" | "uniqueItems">
type Draft = { -readonly [K in keyof Shape.Constraints]: Shape.Constraints[K] }

/** Whether the checks say that a number is an integer. */
export const isInteger = (checks: Checks): boolean => flatten(checks).some(isIntegerCheck)

/** The keywords of these checks for a value of this type; `undefined` where there are none. */
export const fromChecks = (checks: Checks, type: Type): Shape.Constraints | undefined => {
  const draft: Draft = {}
  for (const check of flatten(checks)) {
    // `integer` says it; the bounds of safe integers would be noise in every schema.
    if (!isIntegerCheck(check)) merge(draft, fragmentOf(check, type), type)
  }
  return Object.keys(draft).length === 0 ? undefined : draft
}

const isIntegerCheck = (check: Check): boolean => check.annotations?.representation?.id === "effect/schema/isInt"

/** Groups are read as their members, unless a group says itself what it is in JSON Schema. */
const flatten = (checks: Checks): ReadonlyArray<Check> =>
  (checks ?? []).flatMap((check) =>
    check._tag === "FilterGroup" && check.annotations?.toJsonSchema === undefined ? flatten(check.checks) : [check]
  )

type Fragment = Readonly<Record<string, unknown>>

/** What a check says of itself in JSON Schema, with an `allOf` taken apart. */
const fragmentOf = (check: Check, type: Type): Fragment => {
  const translate = check.annotations?.toJsonSchema
  // A check on the names of members carries schemas of its own, which have no place in a shape.
  if (translate === undefined || check.annotations?.representation?.schemas !== undefined) return {}
  const output: unknown = translate({ type, schemas: [] })
  const fragment: unknown = Array.isArray(output) ? output[0] : output
  if (!isFragment(fragment)) return {}
  const all: unknown = fragment.allOf
  return Object.assign({}, plainPattern(check), fragment, ...(Array.isArray(all) ? all.filter(isFragment) : []))
}

const isFragment = (value: unknown): value is Fragment => Predicate.isObject(value)

const plainPattern = (check: Check): Fragment => {
  const representation = check.annotations?.representation
  if (representation?.id !== "effect/schema/isPattern" || !isFragment(representation.payload)) return {}
  const { flags, source } = representation.payload
  return typeof source === "string" && typeof flags === "string" && pattern.meansTheSameUnicode(source, flags)
    ? { pattern: source }
    : {}
}

const merge = (draft: Draft, fragment: Fragment, type: Type): void => {
  for (const [keyword, tighter] of bounds[type]) {
    const value = fragment[keyword]
    if (typeof value !== "number" || !Number.isFinite(value)) continue
    const before = draft[keyword]
    draft[keyword] = before === undefined ? value : tighter(before, value)
  }
  if (type === "string" && draft.pattern === undefined) {
    const { pattern: source } = fragment
    // A validator compiles patterns with the flag `u`: one that it cannot compile would break the whole schema.
    if (typeof source === "string" && Result.isSuccess(pattern.compile(source))) draft.pattern = source
  }
  if (type === "array" && fragment.uniqueItems === true) draft.uniqueItems = true
}

// Two patterns, or two divisors, would need an `allOf`: the first is shown, the decoder holds all of them.
const first = (before: number): number => before

const bounds: Readonly<Record<Type, ReadonlyArray<readonly [Bound, (a: number, b: number) => number]>>> = {
  string: [
    ["minLength", Math.max],
    ["maxLength", Math.min]
  ],
  number: [
    ["minimum", Math.max],
    ["exclusiveMinimum", Math.max],
    ["maximum", Math.min],
    ["exclusiveMaximum", Math.min],
    ["multipleOf", first]
  ],
  array: [
    ["minItems", Math.max],
    ["maxItems", Math.min]
  ],
  object: [
    ["minProperties", Math.max],
    ["maxProperties", Math.min]
  ]
}
