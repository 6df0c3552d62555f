import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import * as Form from "@agenttool/core/Form"
import * as Question from "@agenttool/core/Question"

type Json = Schema.JsonObject

const fault = (schema: Json): string | undefined =>
  Result.match(Form.checkFlat(schema), { onFailure: (error) => error.message, onSuccess: () => undefined })

const form = (properties: Json, more: Json = {}): Json => ({ type: "object", properties, ...more })

/** The form of one field, and what is wrong with it. */
const member = (field: Schema.Constraint): unknown =>
  Result.match(Form.fromStruct(Schema.Struct({ field })), {
    onFailure: (error) => error.message,
    onSuccess: ({ schema }) => (schema.properties as Json).field
  })

const isRequired = (field: Schema.Constraint): boolean =>
  JSON.stringify(Result.getOrThrow(Form.fromStruct(Schema.Struct({ field }))).schema.required) === '["field"]'

const choices = [
  { value: "low", title: "Some day" },
  { value: "high", title: "Now" }
] as const

describe("Form of a hand-written schema", () => {
  it("P40: texts, numbers, booleans, choices and lists of choices are a form", () => {
    const titled = choices.map(({ title, value }) => ({ const: value, title }))
    const schema = form(
      {
        name: { type: "string", title: "Name", description: "Yours", minLength: 1, maxLength: 9, default: "x" },
        mail: { type: "string", format: "email" },
        link: { type: "string", format: "uri" },
        day: { type: "string", format: "date" },
        time: { type: "string", format: "date-time" },
        ratio: { type: "number", minimum: 0, maximum: 1, default: 0.5 },
        count: { type: "integer", default: 3 },
        sure: { type: "boolean", default: true },
        one: { type: "string", enum: ["a", "b"], default: "a" },
        prio: { type: "string", oneOf: titled },
        many: { type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1, maxItems: 2, default: ["a"] },
        more: { type: "array", items: { anyOf: titled }, uniqueItems: true }
      },
      {
        required: ["name"],
        additionalProperties: false,
        title: "T",
        $schema: "https://json-schema.org/draft/2020-12/schema"
      }
    )
    assert.isUndefined(fault(schema))
    assert.isUndefined(fault(form({})))
  })

  it("M49: enumNames, and keywords that say nothing about nesting, are allowed", () => {
    assert.isUndefined(fault(form({ p: { type: "string", enum: ["low"], enumNames: ["Low"] } })))
    assert.isUndefined(fault(form({ p: { type: "string", pattern: "^a", "x-order": 1, examples: ["a"] } })))
    assert.isUndefined(fault(form({ n: { type: "number", multipleOf: 0.5, exclusiveMinimum: 0, const: 1 } })))
    assert.isUndefined(fault(form({ a: { type: "string" } }, { dependentRequired: { a: ["b"] }, minProperties: 1 })))
  })

  it("P40: what is nested is refused, and the path is named", () => {
    const refused = (properties: Json, more: Json, text: string) =>
      assert.strictEqual(fault(form(properties, more)), `elicitation schema: ${text}`)
    const text = { type: "string" }
    refused({ address: form({}) }, {}, "properties.address: an object inside a form is not allowed")
    refused({ a: { ...text, anyOf: [] } }, {}, "properties.a.anyOf: is not allowed in a form")
    refused({ a: { ...text, properties: {} } }, {}, "properties.a.properties: is not allowed in a form")
    refused({ a: { type: "number", oneOf: [] } }, {}, "properties.a.oneOf: is not allowed in a form")
    refused({ a: { $ref: "#/$defs/x" } }, { $defs: { x: text } }, "$defs: is not allowed in a form")
    refused({ a: { type: "string", $ref: "#" } }, {}, "properties.a.$ref: is not allowed in a form")
    refused({}, { allOf: [{}] }, "allOf: is not allowed in a form")
    refused({}, { patternProperties: {} }, "patternProperties: is not allowed in a form")
    refused({}, { additionalProperties: text }, "additionalProperties: is not allowed in a form")
    refused({ a: { type: "array", items: text } }, {}, "properties.a.items.enum: must be a list of texts")
    refused({ a: { type: "array" } }, {}, "properties.a.items: must say what may be chosen")
    refused({ a: { type: "array", items: form({}) } }, {}, "properties.a.items.properties: is not allowed in a form")
    refused(
      { a: { type: "array", items: { type: "array", items: text } } },
      {},
      "properties.a.items.items: is not allowed in a form"
    )
    refused(
      { a: { type: "array", items: { type: "string", enum: ["a"] }, contains: {} } },
      {},
      "properties.a.contains: is not allowed in a form"
    )
  })

  it("P40: a member that clients cannot show is refused, and the path is named", () => {
    const refused = (a: Schema.Json, text: string) =>
      assert.strictEqual(fault(form({ a })), `elicitation schema: properties.a${text}`)
    refused({ type: ["string", "null"] }, ".type: must be one of string, number, integer, boolean, array")
    refused({ enum: ["a"] }, ".type: must be one of string, number, integer, boolean, array")
    refused({ type: "string", format: "time" }, ".format: must be one of email, uri, date, date-time")
    refused({ type: "string", enum: [1] }, ".enum: must be a list of texts")
    refused({ type: "string", enum: ["a"], enumNames: "A" }, ".enumNames: must be a list of texts")
    refused({ type: "string", oneOf: [{ const: "a" }] }, ".oneOf[0].title: must be a text")
    refused(
      {
        type: "string",
        oneOf: [
          { const: "a", title: "A" },
          { const: 1, title: "B" }
        ]
      },
      ".oneOf[1].const: must be a text"
    )
    refused({ type: "string", oneOf: [{ const: "a", title: "A", not: {} }] }, ".oneOf[0].not: is not allowed in a form")
    refused({ type: "string", default: 1 }, ".default: must be a string")
    refused({ type: "boolean", default: "yes" }, ".default: must be a boolean")
    refused({ type: "integer", default: "1" }, ".default: must be a number")
    refused(
      { type: "array", items: { type: "string", enum: ["a"] }, default: "a" },
      ".default: must be a list of texts"
    )
    refused({ type: "string", title: 1 }, ".title: must be a text")
    refused(true, ": must be an object")
  })

  it("P40: a root that is no object of fields is refused", () => {
    assert.strictEqual(fault({ type: "string" }), 'elicitation schema: type: must be "object"')
    assert.strictEqual(fault({ properties: {} }), 'elicitation schema: type: must be "object"')
    assert.strictEqual(fault({ type: "object" }), "elicitation schema: properties: must be an object")
    assert.strictEqual(fault(form({}, { required: "a" })), "elicitation schema: required: must be a list of names")
  })

  it("C127: a form that cannot be read as a schema is refused in the validator's words", () => {
    assert.strictEqual(
      fault(form({ a: { type: "string", minLength: -1 } })),
      "elicitation schema: properties.a.minLength: must be >= 0"
    )
    assert.include(fault(form({ a: { type: "string", pattern: "(" } })) ?? "", "is no usable pattern")
    const deep = Array.from({ length: 1000 }).reduce((inner: Schema.Json) => [inner], 1)
    assert.strictEqual(fault(form({}, { "x-deep": deep })), "elicitation schema: nested more than 256 levels deep")
  })

  it("C126: an answer is checked against the form as it was written, formats included", () => {
    const compiled = Result.getOrThrow(
      Form.compile(form({ when: { type: "string", format: "date" } }, { required: ["when"] }))
    )
    const answer = (content: Json) =>
      Result.match(Question.checkAnswer({ action: "accept", content }, compiled.check), {
        onFailure: (error) => error.message,
        onSuccess: (ok) => ok.action
      })
    assert.strictEqual(answer({ when: "2026-12-01" }), "accept")
    assert.strictEqual(answer({ when: "tomorrow" }), 'elicitation answer: when: must match format "date"')
    assert.strictEqual(answer({}), "elicitation answer: must have required property 'when'")
  })

  it("C126: a choice with titles is answered by its value, not by its title", () => {
    const schema = form({
      prio: {
        type: "string",
        oneOf: [
          { const: "low", title: "Low" },
          { const: "high", title: "High" }
        ]
      }
    })
    const { check } = Result.getOrThrow(Form.compile(schema))
    assert.isUndefined(check({ prio: "low" }))
    assert.match(check({ prio: "Low" }) ?? "", /^prio: must match .*"low".*"high"/)
    const named = form({ prio: { type: "string", enum: ["low", "high"], enumNames: ["Low", "High"] } })
    const { check: checkNamed } = Result.getOrThrow(Form.compile(named))
    assert.isUndefined(checkNamed({ prio: "low" }))
    assert.strictEqual(checkNamed({ prio: "Low" }), 'prio: must be equal to one of the allowed values: "low", "high"')
  })

  it("C193: a form of an unknown dialect is not checked, and says so", () => {
    const compiled = Result.getOrThrow(
      Form.compile(form({ a: { type: "string" } }, { $schema: "http://example.com/x" }))
    )
    assert.strictEqual(compiled.unchecked, "http://example.com/x")
    assert.isUndefined(compiled.check({ a: 1 }))
  })

  it.effect("a compiler keeps forms by their text, and hands on the object that it was given", () =>
    Effect.gen(function* () {
      const compile = yield* Form.makeCompiler({ capacity: 2 })
      const make = (name: string) => form({ [name]: { type: "string" } })
      const first = yield* compile(make("a"))
      const schema = make("a")
      const second = yield* compile(schema)
      assert.strictEqual(second.schema, schema)
      assert.strictEqual(second.check, first.check)
      yield* compile(make("b"))
      yield* compile(make("c"))
      assert.notStrictEqual((yield* compile(make("a"))).check, first.check)
      const failed = yield* Effect.flip(compile(form({ a: form({}) })))
      assert.strictEqual(failed.message, "elicitation schema: properties.a: an object inside a form is not allowed")
      const cyclic: { [key: string]: Schema.Json } = form({}) as never
      cyclic.self = cyclic
      assert.strictEqual((yield* Effect.flip(compile(cyclic))).reason, "nested more than 256 levels deep")
    })
  )
})

describe("Form of a Schema", () => {
  it("P40: a struct is an object with its fields in order, and names the required ones", () => {
    const { schema } = Form.make(
      Schema.Struct({ z: Schema.String, a: Schema.optionalKey(Schema.Boolean), m: Schema.optional(Schema.Finite) })
    )
    assert.strictEqual(
      JSON.stringify(schema),
      '{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"boolean"},"m":{"type":"number"}},"required":["z"]}'
    )
    assert.strictEqual(
      JSON.stringify(Form.make(Schema.Struct({})).schema),
      '{"type":"object","properties":{},"required":[]}'
    )
  })

  it("P40: primitives, with annotations and checks as keywords", () => {
    assert.deepStrictEqual(
      member(
        Schema.String.annotate({ title: "T", description: "D", default: "x", format: "email" }).check(
          Schema.isMaxLength(9)
        )
      ),
      { type: "string", title: "T", description: "D", format: "email", maxLength: 9, default: "x" }
    )
    assert.deepStrictEqual(
      member(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })).annotate({ description: "n", default: 3 })),
      { type: "integer", description: "n", minimum: 1, maximum: 9, default: 3 }
    )
    assert.deepStrictEqual(member(Schema.Number.annotateKey({ title: "Key" })), { type: "number", title: "Key" })
    assert.deepStrictEqual(member(Schema.Boolean.annotate({ default: false })), { type: "boolean", default: false })
    assert.deepStrictEqual(member(Schema.String.check(Schema.isPattern(/^a/))), { type: "string", pattern: "^a" })
    assert.deepStrictEqual(member(Schema.String.annotate({ format: "uuid" })), { type: "string" })
    assert.deepStrictEqual(member(Schema.NonEmptyString.pipe(Schema.brand("Name"))), { type: "string", minLength: 1 })
    assert.deepStrictEqual(member(Schema.FiniteFromString), { type: "string" })
    assert.deepStrictEqual(member(Schema.TemplateLiteral(["v", Schema.Number])), { type: "string" })
  })

  it("P40: choices and lists of choices, with and without titles", () => {
    const plain = Schema.Literals(["a", "b"])
    const titled = choices.map(({ title, value }) => ({ const: value, title }))
    assert.deepStrictEqual(member(plain), { type: "string", enum: ["a", "b"] })
    assert.deepStrictEqual(member(Schema.Literal("a")), { type: "string", enum: ["a"] })
    assert.deepStrictEqual(member(Form.choice(choices)), { type: "string", oneOf: titled })
    assert.deepStrictEqual(member(Schema.Enum({ A: "a" })), { type: "string", oneOf: [{ const: "a", title: "A" }] })
    assert.deepStrictEqual(member(Schema.Union([Schema.Literal("a").annotate({ title: "A" }), Schema.Literal("b")])), {
      type: "string",
      oneOf: [
        { const: "a", title: "A" },
        { const: "b", title: "b" }
      ]
    })
    const items = { type: "string", enum: ["a", "b"] }
    assert.deepStrictEqual(member(Schema.Array(plain)), { type: "array", items })
    assert.deepStrictEqual(member(Schema.NonEmptyArray(plain)), { type: "array", minItems: 1, items })
    const atLeast = (least: number) => Schema.NonEmptyArray(plain).check(Schema.isMinLength(least))
    assert.deepStrictEqual(member(atLeast(0)), { type: "array", minItems: 1, items })
    assert.deepStrictEqual(member(atLeast(2)), { type: "array", minItems: 2, items })
    assert.deepStrictEqual(member(Schema.UniqueArray(plain)), { type: "array", uniqueItems: true, items })
    assert.deepStrictEqual(
      member(
        Form.choices(choices)
          .check(Schema.isMinLength(1), Schema.isMaxLength(2))
          .annotate({ default: ["low"] })
      ),
      { type: "array", minItems: 1, maxItems: 2, items: { anyOf: titled }, default: ["low"] }
    )
  })

  it("P40: dates, times and addresses are texts of that format", () => {
    assert.deepStrictEqual(member(Schema.Date), { type: "string", format: "date-time" })
    assert.deepStrictEqual(member(Schema.DateFromString), { type: "string", format: "date-time" })
    assert.deepStrictEqual(member(Schema.DateTimeUtc), { type: "string", format: "date-time" })
    assert.deepStrictEqual(member(Schema.DateTimeUtcFromString), { type: "string", format: "date-time" })
    assert.deepStrictEqual(member(Schema.URLFromString), { type: "string", format: "uri" })
    const day = Schema.Date.annotate({ format: "date", default: new Date(0) })
    assert.deepStrictEqual(member(day), { type: "string", format: "date", default: "1970-01-01" })
  })

  it("P40: a field that may be left out keeps its form", () => {
    const count = Schema.Int.annotate({ title: "Count", default: 3 })
    const expected = { type: "integer", title: "Count", default: 3 }
    for (const field of [
      Schema.optionalKey(count),
      Schema.optional(count),
      count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(3)))
    ]) {
      assert.deepStrictEqual(member(field), expected)
      assert.isFalse(isRequired(field))
    }
    assert.isTrue(isRequired(count))
    const prio = Schema.optional(Form.choice(choices))
    assert.isFalse(isRequired(prio))
    assert.hasAllKeys(member(prio), ["type", "oneOf"])
  })

  it("P40: a field that has no place in a form is refused, and named", () => {
    const refused = (field: Schema.Constraint, reason: string) =>
      assert.strictEqual(member(field), `elicitation schema: field: ${reason}`)
    refused(Schema.Struct({ a: Schema.String }), "an object inside a form is not allowed")
    refused(Schema.Record(Schema.String, Schema.String), "an object inside a form is not allowed")
    refused(Schema.Array(Schema.String), "a list in a form is a choice among given texts")
    refused(Schema.Tuple([Schema.Literal("a")]), "a list in a form is a choice among given texts")
    const mixed = Schema.TupleWithRest(Schema.Tuple([Schema.Literal("x")]), [Schema.Literals(["a", "b"])])
    refused(mixed, "a list in a form is a choice among given texts")
    refused(Schema.NullOr(Schema.String), "`null` is no answer: make the field optional")
    refused(Schema.optional(Schema.NullOr(Schema.String)), "`null` is no answer: make the field optional")
    refused(Schema.UndefinedOr(Schema.String), "`undefined` has no JSON: make the field optional")
    refused(Schema.Union([Schema.String, Schema.Number]), "a field has one type, or is a choice among given texts")
    refused(Schema.Literals([1, 2]), "a field has one type, or is a choice among given texts")
    refused(Schema.Literal(true), "a choice in a form is a text")
    refused(Schema.Enum({ A: 1 }), "a choice in a form is a text")
    refused(Schema.Literals([]), "there is nothing to choose from")
    refused(Schema.Array(Schema.Literals([])), "there is nothing to choose from")
    refused(Schema.Unknown, "unknown has no place in a form")
    refused(Schema.BigInt, "bigint has no place in a form")
    refused(
      Schema.suspend(() => Schema.String),
      "suspend has no place in a form"
    )
  })

  it("P43: a secret is not asked for by a form", () => {
    const text = "elicitation schema: field: secrets are not asked for by a form (P43)"
    assert.strictEqual(member(Schema.Redacted(Schema.String)), text)
    assert.strictEqual(member(Schema.RedactedFromValue(Schema.String)), text)
  })

  it("P40: what the types can see is refused by the compiler, the rest when the form is made", () => {
    const throws = (build: () => unknown, text: string) => assert.throws(build, text)
    // @ts-expect-error an object inside a form
    throws(() => Form.make(Schema.Struct({ a: Schema.Struct({ b: Schema.String }) })), "a: an object inside a form")
    // @ts-expect-error a list of any texts
    throws(() => Form.make(Schema.Struct({ a: Schema.Array(Schema.String) })), "a: a list in a form")
    // @ts-expect-error null is no answer
    throws(() => Form.make(Schema.Struct({ a: Schema.NullOr(Schema.String) })), "a: `null`")
    // @ts-expect-error a field has one type
    throws(() => Form.make(Schema.Struct({ a: Schema.Union([Schema.String, Schema.Number]) })), "a: a field")
    // @ts-expect-error numbers to choose from
    throws(() => Form.make(Schema.Struct({ a: Schema.Literals([1, 2]) })), "a: a field")
    // @ts-expect-error a constant boolean
    throws(() => Form.make(Schema.Struct({ a: Schema.Literal(true) })), "a: a choice")
    // @ts-expect-error a secret
    throws(() => Form.make(Schema.Struct({ a: Schema.Redacted(Schema.String) })), "a: secrets")
    // @ts-expect-error anything
    throws(() => Form.make(Schema.Struct({ a: Schema.Unknown })), "a: unknown")
    // @ts-expect-error one bad field among good ones
    throws(() => Form.make(Schema.Struct({ ok: Schema.String, a: Schema.BigInt })), "a: bigint")
    // Types that pass the compiler and fail here.
    throws(() => Form.make(Schema.Struct({ a: Schema.Any })), "elicitation schema: a: any has no place in a form")
    throws(() => Form.make(Schema.Struct({ a: Schema.RedactedFromValue(Schema.String) })), "a: secrets")
    const good = Form.make(
      Schema.Struct({
        text: Schema.String,
        number: Schema.optionalKey(Schema.Int),
        boolean: Schema.optional(Schema.Boolean),
        choice: Form.choice(choices),
        list: Form.choices(choices),
        literals: Schema.NonEmptyArray(Schema.Literals(["a"])),
        date: Schema.Date,
        day: Schema.DateFromString,
        utc: Schema.DateTimeUtc,
        url: Schema.URLFromString
      })
    )
    assert.isUndefined(fault(good.schema))
  })

  it.effect("C126: an answer is decoded to the type, and a fault names its path", () =>
    Effect.gen(function* () {
      const { decode } = Form.make(
        Schema.Struct({
          when: Schema.Date,
          count: Schema.optional(Schema.Int.check(Schema.isGreaterThan(0))),
          list: Form.choices(choices)
        })
      )
      const answer = yield* decode({ when: "2026-12-01T00:00:00Z", list: ["low"], extra: 1 })
      const list: ReadonlyArray<"low" | "high"> = answer.list
      assert.deepStrictEqual([answer.when.getUTCFullYear(), answer.count, list], [2026, undefined, ["low"]])
      const fails = (content: unknown) => Effect.map(Effect.flip(decode(content)), (error) => error.message)
      assert.match(yield* fails({}), /^elicitation answer: when: /)
      assert.match(yield* fails({ when: "no", list: [] }), /^elicitation answer: when: /)
      assert.match(yield* fails({ when: "2026-12-01", list: [], count: 0 }), /^elicitation answer: count: /)
      assert.match(yield* fails({ when: "2026-12-01", list: ["low", "Now"] }), /^elicitation answer: list\[1\]: /)
      assert.match(yield* fails([1]), /^elicitation answer: [^:]+$/)
    })
  )

  it("a form is made once per schema", () => {
    const schema = Schema.Struct({ a: Schema.String })
    assert.strictEqual(Form.make(schema), Form.make(schema))
    assert.isTrue(Form.isForm(Form.make(schema)))
    assert.isFalse(Form.isForm(schema))
  })

  const Answer = Schema.Struct({
    text: Schema.String.check(Schema.isMaxLength(4)),
    count: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: -5, maximum: 5 }))),
    ratio: Schema.Finite,
    sure: Schema.Boolean,
    one: Form.choice(choices),
    many: Form.choices(choices).check(Schema.isMinLength(1)),
    // The format knows no years beyond these.
    day: Schema.optionalKey(
      Schema.Date.check(Schema.isBetweenDate({ minimum: new Date(0), maximum: new Date("9999-12-31T00:00:00Z") }))
    )
  })
  const answerForm = Form.make(Answer)
  const compiled = Result.getOrThrow(Form.compile(answerForm.schema))
  it.effect.prop(
    "P40: the form of a Schema is a flat form, and takes every answer that its decoder takes",
    { answer: Arbitrary.schema(Answer) },
    ({ answer }) =>
      Effect.gen(function* () {
        const content = yield* Schema.encodeEffect(Schema.toCodecJson(Answer))(answer)
        assert.isUndefined(compiled.check(JSON.parse(JSON.stringify(content))))
        assert.deepStrictEqual(yield* answerForm.decode(content), answer)
      })
  )
})
