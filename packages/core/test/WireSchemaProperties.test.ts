/**
 * Laws of schemas that nobody wrote: random ones, and a list of those that a generator would hardly find.
 *
 * - Whatever value a Schema can have is accepted, encoded, by a JSON Schema validator under the generated schema, by the
 *   tool's own check, and by the decoder.
 * - On values that were damaged the own check and the validator agree about the shape, and what the own check lets
 *   through never makes the decoder throw.
 *
 * Three differences are known, and kept out here: `null` of a nullable field outside strict, which both refuse although
 * the Schema has it (C168); members named `__proto__`, which the validator does not look at; and fields with a name that
 * every object inherits, such as `constructor`, which Effect's decoder takes for present where they are optional.
 */
import { assert, describe, it } from "@effect/vitest"
import * as ArgumentsCheck from "@agenttool/core/ArgumentsCheck"
import * as Shape from "@agenttool/core/Shape"
import * as WireSchema from "@agenttool/core/WireSchema"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Arbitrary, Cause, Effect, Exit, Result, Schema } from "effect"

// ---------------------------------------------------------------------------------------------------------------------
// Random schemas
// ---------------------------------------------------------------------------------------------------------------------

const leaves: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = {
  string: Schema.String,
  short: Schema.String.check(Schema.isMinLength(2), Schema.isMaxLength(5)),
  points: Schema.String.check(Schema.isBetweenCodePoints(1, 3)),
  pattern: Schema.String.check(Schema.isPattern(/^[a-c]+-\d{2}$/)),
  unicode: Schema.String.check(Schema.isPattern(/^x.*$/u)),
  integer: Schema.Int,
  small: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 14 })),
  even: Schema.Int.check(Schema.isMultipleOf(2)),
  finite: Schema.Finite,
  positive: Schema.Finite.check(Schema.isGreaterThan(0)),
  boolean: Schema.Boolean,
  unknown: Schema.Unknown,
  json: Schema.Json,
  words: Schema.Literals(["low", "high", ""]),
  numbers: Schema.Literals([1, 2, 3]),
  halves: Schema.Literals([0.5, 1]),
  flag: Schema.Literal(true),
  date: Schema.Date,
  utc: Schema.DateTimeUtc,
  bytes: Schema.Uint8Array,
  textual: Schema.FiniteFromString,
  encodedBigint: Schema.BigIntFromString
}

const names = ["a", "b", "zeta", "x y", "é"] as const

/** What a random schema is made from. */
type Plan =
  | { readonly kind: "leaf"; readonly leaf: string }
  | { readonly kind: "array" | "some" | "record"; readonly of: Plan }
  | { readonly kind: "struct"; readonly fields: ReadonlyArray<PlanField> }
interface PlanField {
  readonly name: string
  readonly presence: "required" | "optionalKey" | "optional"
  readonly nullable: boolean
  readonly of: Plan
}

const Leaf = Schema.Struct({ kind: Schema.tag("leaf"), leaf: Schema.Literals(Object.keys(leaves)) })
const Plan: Schema.Codec<Plan> = Schema.Union([
  Leaf,
  Schema.Struct({
    kind: Schema.Literals(["array", "some", "record"]),
    of: Schema.suspend((): Schema.Codec<Plan> => Plan)
  }),
  Schema.suspend((): Schema.Codec<Plan> => StructPlan)
])
const StructPlan = Schema.Struct({
  kind: Schema.tag("struct"),
  fields: Schema.Array(
    Schema.Struct({
      name: Schema.Literals(names),
      presence: Schema.Literals(["required", "optionalKey", "optional"]),
      nullable: Schema.Boolean,
      of: Schema.suspend((): Schema.Codec<Plan> => Plan)
    })
  ).check(Schema.isMaxLength(5))
})

/** Under strict there are no maps, and a value has every field, so that only `null` says that there is nothing. */
const schemaOf = (plan: Plan, strict: boolean): Schema.Codec<unknown, unknown> => {
  switch (plan.kind) {
    case "leaf":
      return leaves[plan.leaf] ?? Schema.String
    case "array":
      return Schema.Array(schemaOf(plan.of, strict))
    case "some":
      return Schema.NonEmptyArray(schemaOf(plan.of, strict))
    case "record":
      return strict ? Schema.Array(schemaOf(plan.of, strict)) : Schema.Record(Schema.String, schemaOf(plan.of, strict))
    case "struct":
      return Schema.Struct(Object.fromEntries(plan.fields.map((field) => [field.name, fieldOf(field, strict)])))
  }
}

const fieldOf = (field: PlanField, strict: boolean): Schema.Codec<unknown, unknown> => {
  const of = schemaOf(field.of, strict)
  if (strict) return field.nullable ? Schema.NullOr(of) : of
  switch (field.presence) {
    case "required":
      return of
    case "optionalKey":
      return Schema.optionalKey(field.nullable ? Schema.NullOr(of) : of)
    case "optional":
      return Schema.optional(field.nullable ? Schema.NullOr(of) : of)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// What judges a value
// ---------------------------------------------------------------------------------------------------------------------

// Own members only, as in JSON: else every object would have a member named `constructor`.
const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true })

const bare = <S extends Shape.Shape>(shape: S): S => {
  const { constraints: _, ...rest } = shape
  if (shape.type === "array") Object.assign(rest, { items: bare(shape.items) })
  if (shape.type === "map") Object.assign(rest, { values: bare(shape.values) })
  if (shape.type === "object") Object.assign(rest, { fields: shape.fields.map(bare) })
  return rest as S // the same shape, without the keywords
}

const judges = (schema: Schema.Codec<unknown, unknown>, strict: boolean) => {
  const shape = Result.getOrThrow(WireSchema.fromSchema(schema))
  const codec = Schema.toCodecJson(schema)
  const encode = Schema.encodeUnknownSync(codec)
  // A field that nothing is said of is left out: an undefined has no JSON, and outside strict a null is not shown.
  const withoutNulls = strict ? (value: unknown) => value : ArgumentsCheck.nullAsAbsent(shape)
  const validate = (shape: Shape.Shape) => ajv.compile(Result.getOrThrow(Shape.toJsonSchema(shape, { strict })))
  return {
    json: (value: unknown): unknown => withoutNulls(JSON.parse(JSON.stringify(encode(value)))),
    whole: validate(shape),
    shapeOnly: validate(bare(shape)),
    check: ArgumentsCheck.make(shape, { strict }),
    decode: Schema.decodeUnknownExit(codec)
  }
}

type Judges = ReturnType<typeof judges>

const accepted = (judges: Judges, value: unknown): void => {
  const json = judges.json(value)
  assert.isTrue(judges.whole(json), JSON.stringify([json, judges.whole.errors]))
  assert.strictEqual(judges.check(json)?.message, undefined)
  const decoded = judges.decode(json)
  assert.isTrue(Exit.isSuccess(decoded), Exit.isFailure(decoded) ? Cause.pretty(decoded.cause) : "")
}

const agreed = (judges: Judges, json: unknown): void => {
  const fault = judges.check(json)
  assert.strictEqual(
    judges.shapeOnly(json),
    fault === undefined,
    JSON.stringify([json, fault?.message, judges.shapeOnly.errors])
  )
  const decoded = judges.decode(json)
  if (fault === undefined && Exit.isFailure(decoded)) {
    assert.isFalse(Cause.hasDies(decoded.cause), Cause.pretty(decoded.cause))
    assert.isTrue(Cause.hasFails(decoded.cause))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Damage
// ---------------------------------------------------------------------------------------------------------------------

const replacements: ReadonlyArray<unknown> = [
  null,
  true,
  0,
  1.5,
  -7,
  1e300,
  "",
  "low",
  "2020-01-01",
  [],
  [null],
  {},
  { a: 1 }
]

const Damage = Schema.Struct({
  way: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 20 }))).check(Schema.isMaxLength(4)),
  kind: Schema.Literals(["replace", "remove", "add"]),
  choice: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))
})

const pick = <A>(values: ReadonlyArray<A>, choice: number): A | undefined => values[choice % values.length]

const damage = (value: unknown, { choice, kind, way }: typeof Damage.Type): unknown => {
  const [step, ...rest] = way
  if (step !== undefined && Array.isArray(value) && value.length > 0) {
    return value.map((item, index) =>
      index === step % value.length ? damage(item, { choice, kind, way: rest }) : item
    )
  }
  if (step !== undefined && typeof value === "object" && value !== null && Object.keys(value).length > 0) {
    const at = pick(Object.keys(value), step)
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [
        key,
        key === at ? damage(member, { choice, kind, way: rest }) : member
      ])
    )
  }
  if (kind === "remove" && Array.isArray(value)) return value.slice(1)
  if (kind === "add" && Array.isArray(value)) return [...value, pick(replacements, choice)]
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value)
    if (kind === "remove") return Object.fromEntries(entries.filter((_, index) => index !== choice % entries.length))
    if (kind === "add")
      return { ...value, [pick([...names, "constructor", "toString"], choice) ?? "a"]: pick(replacements, choice) }
  }
  return pick(replacements, choice)
}

// ---------------------------------------------------------------------------------------------------------------------
// The laws
// ---------------------------------------------------------------------------------------------------------------------

const damages = Arbitrary.array(Arbitrary.schema(Damage), { minLength: 1, maxLength: 3 })

const options = { arbitrary: { runs: 80 } }

describe.each([{ strict: false }, { strict: true }])("random schemas, strict $strict", ({ strict }) => {
  const cases = Arbitrary.schema(StructPlan).pipe(
    Arbitrary.flatMap((plan) =>
      Arbitrary.all({ plan: Arbitrary.Constant(plan), value: Arbitrary.schema(schemaOf(plan, strict)), damages })
    )
  )
  const judgesOf = (plan: Plan) => judges(schemaOf(plan, strict), strict)

  it.effect.prop(
    "C165 C168 C169 C179 C182 C183 C185: every value is accepted by validator, check and decoder",
    [cases],
    ([{ plan, value }]) => Effect.sync(() => accepted(judgesOf(plan), value)),
    options
  )

  it.effect.prop(
    "C179 C181 C182 C183 C185: on damaged values check and validator agree, and the decoder never throws",
    [cases],
    ([{ damages, plan, value }]) =>
      Effect.sync(() => {
        const made = judgesOf(plan)
        agreed(made, damages.reduce(damage, made.json(value)))
      }),
    options
  )
})

class User extends Schema.Class<User>("User")({ id: Schema.NonEmptyString, since: Schema.DateFromString }) {}

const written: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = {
  empty: Schema.Struct({}),
  class: Schema.Struct({ user: User, more: Schema.Array(User) }),
  renamed: Schema.Struct({ first: Schema.FiniteFromString, b: Schema.optionalKey(Schema.Boolean) }).pipe(
    Schema.encodeKeys({ first: "first_name" })
  ),
  defaults: Schema.Struct({
    days: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 14 })).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed(3))
    ),
    unit: Schema.Literals(["c", "f"]).pipe(Schema.withDecodingDefault(Effect.succeed("c" as const)))
  }),
  options: Schema.Struct({
    key: Schema.OptionFromOptionalKey(Schema.FiniteFromString),
    list: Schema.optionalKey(Schema.Array(Schema.Literals([true, false])))
  }),
  collections: Schema.Struct({
    chunk: Schema.Chunk(Schema.Int),
    unique: Schema.UniqueArray(Schema.Int),
    some: Schema.NonEmptyArray(Schema.String).check(Schema.isMaxLength(3)),
    counted: Schema.Record(Schema.String, Schema.Int).check(Schema.isMinProperties(1), Schema.isMaxProperties(3))
  }),
  keys: Schema.Record(Schema.Literals(["b", "a"]), Schema.optionalKey(Schema.Int)),
  secrets: Schema.Struct({ url: Schema.URL, uuid: Schema.String.check(Schema.isUUID()) }),
  texts: Schema.Struct({
    trimmed: Schema.Trimmed,
    upper: Schema.String.check(Schema.isUppercased()),
    starts: Schema.String.check(Schema.isStartingWith("a.b")),
    mail: Schema.String.check(Schema.isPattern(/^[^@\s]+@[^@\s]+\.[^@\s]+$/)),
    wide: Schema.String.check(Schema.isPattern(/^..$/)),
    json: Schema.fromJsonString(Schema.Struct({ a: Schema.Int }))
  }),
  bounds: Schema.Struct({
    int32: Schema.Number.check(Schema.isInt32()),
    below: Schema.Finite.check(Schema.isLessThan(0), Schema.isGreaterThanOrEqualTo(-10)),
    date: Schema.DateFromMillis
  })
}

describe.each(Object.entries(written))("the schema %s", (_name, schema) => {
  const made = judges(schema, false)
  it.effect.prop(
    "C165 C168 C179: every value is accepted, damaged ones are agreed upon",
    { value: Arbitrary.schema(schema), damages },
    ({ damages, value }) =>
      Effect.sync(() => {
        accepted(made, value)
        agreed(made, damages.reduce(damage, made.json(value)))
      }),
    options
  )
})
