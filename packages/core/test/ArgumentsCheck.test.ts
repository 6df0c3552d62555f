import { assert, describe, it } from "@effect/vitest"
import * as ArgumentsCheck from "@agenttool/core/ArgumentsCheck"
import type * as Shape from "@agenttool/core/Shape"
import { Arbitrary, Effect, Result, Schema } from "effect"

const object = (...fields: ReadonlyArray<Shape.Field>): Shape.ObjectShape => ({ type: "object", fields })

/** What a model reads of these arguments, as raw text; `fine` where there is nothing to read. */
const reading = (shape: Shape.Shape, options?: { readonly strict?: boolean }) => {
  const check = ArgumentsCheck.make(shape, options)
  return (text: string): string => {
    const parsed = ArgumentsCheck.parse(text)
    return Result.isFailure(parsed) ? parsed.failure.message : (check(parsed.success, text)?.message ?? "fine")
  }
}

const field = (type: Shape.Shape, text: string, options?: { readonly strict?: boolean; readonly nullable?: boolean }) =>
  reading(object({ name: "x", ...type, nullable: options?.nullable ?? false }), options)(`{"x":${text}}`)

describe("parsing", () => {
  const read = reading(object({ name: "path", type: "string", optional: true }))

  it("C81 C178: no text is the empty object", () => {
    assert.deepStrictEqual(ArgumentsCheck.parse(""), Result.succeed({}))
    assert.strictEqual(read(""), "fine")
  })

  it("C107 C178: text that is not JSON is refused with the words of the parser, in one line", () => {
    for (const text of ["{", "nul", "{'a':1}", "[1,]", " ", '{\n"a"\n:\nx}']) {
      const parser = Result.try({ try: () => JSON.parse(text), catch: (error) => (error as SyntaxError).message })
      const words = Result.isFailure(parser) ? parser.failure.replaceAll("\n", " ") : ""
      assert.strictEqual(read(text), `invalid arguments: not valid JSON: ${words}`)
    }
    assert.notInclude(read('{\n"a"\n:\nx}'), "\n")
  })

  it("C178: text after the value is refused", () => {
    assert.match(read('{} {"path":"x"}'), /^invalid arguments: not valid JSON: ./)
    assert.match(read("{}x"), /^invalid arguments: not valid JSON: ./)
    assert.strictEqual(read(" {} \n"), "fine")
  })

  it("C187: of two members with one name the last counts", () => {
    assert.strictEqual(read('{"path":1,"path":"x"}'), "fine")
    assert.strictEqual(read('{"path":"x","path":1}'), "invalid arguments: path: expected string, got 1")
  })
})

describe("the check", () => {
  const table = reading(
    object(
      { name: "path", type: "string" },
      { name: "level", type: "string", enum: ["low", "high"], optional: true },
      { name: "count", type: "integer", enum: [1, 2], optional: true, nullable: true },
      { name: "tags", type: "array", items: { type: "string" }, optional: true },
      { name: "nested", ...object({ name: "deep", type: "boolean" }), optional: true },
      { name: "ratio", type: "number", optional: true }
    )
  )

  it.each([
    ['{"path":"/x"}', "fine"],
    ["", 'invalid arguments: missing required property "path"'],
    ['{"path":1}', "invalid arguments: path: expected string, got 1"],
    ['{"path":"/x","level":"mid"}', 'invalid arguments: level: expected one of ["low", "high"], got "mid"'],
    ['{"path":"/x","tags":["a",2]}', "invalid arguments: tags[1]: expected string, got 2"],
    ['{"path":"/x","nested":{}}', 'invalid arguments: nested: missing required property "deep"'],
    ['{"path":null}', "invalid arguments: path: expected string, got null"],
    ['{"path":"/x","count":2.0,"bogus":1}', "fine"],
    ["[1]", "invalid arguments: expected object, got array"]
  ])("C190: the examples: %s", (text, expected) => {
    assert.strictEqual(table(text), expected)
  })

  it.each([
    ["boolean", { type: "boolean" }, "true", "1", "1"],
    ["integer", { type: "integer" }, "-3", '"3"', '"3"'],
    ["number", { type: "number" }, "1.5", "true", "true"],
    ["string", { type: "string" }, '"a"', "false", "false"],
    ["array", { type: "array", items: { type: "any" } }, "[1,null]", '{"a":1}', "object"],
    ["array", { type: "array", items: { type: "string" } }, "[]", '"[]"', '"[]"'],
    ["object", object(), "{}", "[{}]", "array"],
    ["object", { type: "map", values: { type: "any" } }, '{"a":null}', "[]", "array"],
    ["object", { type: "map", values: { type: "string" } }, '{"a":"b"}', "0", "0"]
  ] satisfies ReadonlyArray<readonly [string, Shape.Shape, string, string, string]>)(
    "C179 C189: a value that is no %s is refused",
    (type, shape, right, wrong, shown) => {
      assert.strictEqual(field(shape, right), "fine")
      assert.strictEqual(field(shape, wrong), `invalid arguments: x: expected ${type}, got ${shown}`)
    }
  )

  it("C179: a schema without a type accepts everything, at any depth", () => {
    for (const text of ["null", "1", '"a"', "[null]", '{"a":[{}]}', "1e400"]) {
      assert.strictEqual(field({ type: "any" }, text), "fine")
      assert.strictEqual(field({ type: "any" }, text, { strict: true, nullable: true }), "fine")
    }
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    assert.strictEqual(field({ type: "any" }, deep), "fine")
    assert.strictEqual(field({ type: "string" }, deep), "invalid arguments: x: expected string, got array")
  })

  it("C179: formats and constraints are not looked at here", () => {
    const when: Shape.Shape = { type: "string", format: "date-time", constraints: { minLength: 90, pattern: "^$" } }
    assert.strictEqual(field(when, '"yesterday"'), "fine")
    assert.strictEqual(field({ type: "integer", constraints: { minimum: 5 } }, "1"), "fine")
  })

  it("C179: items, map values and properties are checked all the way down", () => {
    const deep: Shape.Shape = {
      type: "array",
      items: { type: "map", values: { type: "array", items: object({ name: "y", type: "boolean" }) } }
    }
    assert.strictEqual(field(deep, '[{},{"k":[{"y":true}]}]'), "fine")
    assert.strictEqual(
      field(deep, '[{},{"k":[{"y":true},{"y":0}]}]'),
      "invalid arguments: x[1].k[1].y: expected boolean, got 0"
    )
  })

  it("C180: null comes first, then the enum, then the type, then what is inside", () => {
    const shape: Shape.Shape = { type: "integer", enum: [1, 2] }
    assert.strictEqual(field(shape, "1.5"), "invalid arguments: x: expected one of [1, 2], got 1.5")
    assert.strictEqual(field(shape, '"1"'), 'invalid arguments: x: expected one of [1, 2], got "1"')
    assert.strictEqual(field(shape, "null"), "invalid arguments: x: expected integer, got null")
    assert.strictEqual(field(shape, "[1]"), "invalid arguments: x: expected one of [1, 2], got array")
  })

  it("C181: null is taken where the schema shows it: of a nullable field under strict, and of any", () => {
    const level: Shape.Shape = { type: "string", enum: ["low"] }
    assert.strictEqual(field(level, "null", { strict: true, nullable: true }), "fine")
    assert.strictEqual(
      field(level, "null", { strict: true, nullable: false }),
      "invalid arguments: x: expected string, got null"
    )
    assert.strictEqual(
      field(level, "null", { strict: false, nullable: true }),
      "invalid arguments: x: expected string, got null"
    )
    assert.strictEqual(
      field({ type: "array", items: { type: "string" } }, "[null]"),
      "invalid arguments: x[0]: expected string, got null"
    )
  })

  it("C182: an integer is any number without a fraction, a number any that is finite", () => {
    for (const text of ["2", "2.0", "2e0", "-0", "12345678901234567890"]) {
      assert.strictEqual(field({ type: "integer" }, text), "fine")
      assert.strictEqual(field({ type: "number" }, text), "fine")
    }
    assert.strictEqual(field({ type: "integer" }, "1.5"), "invalid arguments: x: expected integer, got 1.5")
    assert.strictEqual(field({ type: "integer" }, "1e400"), "invalid arguments: x: expected integer, got 1e400")
    assert.strictEqual(field({ type: "number" }, "-1e400"), "invalid arguments: x: expected number, got -1e400")
    assert.strictEqual(field({ type: "number" }, '"1"'), 'invalid arguments: x: expected number, got "1"')
  })

  it("C183: an enum compares JSON values", () => {
    assert.strictEqual(field({ type: "integer", enum: [2, 0] }, "2.0"), "fine")
    assert.strictEqual(field({ type: "integer", enum: [2, 0] }, "-0"), "fine")
    assert.strictEqual(field({ type: "boolean", enum: [true] }, "true"), "fine")
    assert.strictEqual(
      field({ type: "boolean", enum: [true] }, "false"),
      "invalid arguments: x: expected one of [true], got false"
    )
    assert.strictEqual(
      field({ type: "string", enum: ["2"] }, "2"),
      'invalid arguments: x: expected one of ["2"], got 2'
    )
  })

  it("C184: the first required member that is missing, in the order of the schema, comes before all else", () => {
    const read = reading(object({ name: "z", type: "string" }, { name: "a", type: "string" }))
    assert.strictEqual(read("{}"), 'invalid arguments: missing required property "z"')
    assert.strictEqual(read('{"z":1}'), 'invalid arguments: missing required property "a"')
  })

  it("C184: of several faulty members the first by name is reported, alone", () => {
    const read = reading(object({ name: "zeta", type: "string" }, { name: "alpha", type: "string" }))
    assert.strictEqual(read('{"zeta":1,"alpha":1}'), "invalid arguments: alpha: expected string, got 1")
    const map = reading(object({ name: "m", type: "map", values: { type: "string" } }))
    assert.strictEqual(map('{"m":{"c":1,"b":2,"d":3,"a":"x"}}'), "invalid arguments: m.b: expected string, got 2")
    const strict = reading(object({ name: "m", type: "string" }), { strict: true })
    assert.strictEqual(strict('{"m":1,"z":1,"n":1}'), "invalid arguments: m: expected string, got 1")
    assert.strictEqual(strict('{"m":1,"z":1,"a":1}'), 'invalid arguments: unexpected property "a"')
  })

  it("C86 C185: unknown members are not looked at outside strict, and under strict a fault of their object", () => {
    const shape = object({ name: "in", ...object({ name: "y", type: "boolean" }) })
    const text = '{"in":{"y":true,"zz":[1e400]}}'
    assert.strictEqual(reading(shape)(text), "fine")
    assert.strictEqual(reading(shape, { strict: true })(text), 'invalid arguments: in: unexpected property "zz"')
  })

  it("C169: under strict every field is required", () => {
    const shape = object({ name: "y", type: "boolean", optional: true })
    assert.strictEqual(reading(shape)("{}"), "fine")
    assert.strictEqual(reading(shape, { strict: true })("{}"), 'invalid arguments: missing required property "y"')
  })

  it("C186: a type that JSON Schema does not have refuses every value", () => {
    // Data from outside, which no compiler has seen.
    const shape = { type: "object", fields: [{ name: "x", type: "strnig" }] } as unknown as Shape.Shape
    const read = reading(shape)
    for (const text of ["null", '"a"', "{}"]) {
      assert.strictEqual(read(`{"x":${text}}`), 'invalid arguments: x: schema type "strnig" is not a JSON Schema type')
    }
  })

  it("C188: the path is names joined by points and indices in brackets, and stands apart from the message", () => {
    const shape = object({ name: "list", type: "array", items: object({ name: "name", type: "string" }) })
    const found = ArgumentsCheck.make(shape)({ list: [{ name: 1 }] })
    assert.strictEqual(found?._tag, "InvalidArguments")
    assert.strictEqual(found?.path, "list[0].name")
    assert.strictEqual(found?.detail, "expected string, got 1")
    assert.strictEqual(ArgumentsCheck.formatPath([]), "")
    assert.strictEqual(ArgumentsCheck.formatPath(["tags", 1]), "tags[1]")
    assert.strictEqual(ArgumentsCheck.formatPath(["nested", "deep"]), "nested.deep")
  })

  it("C189: a missing or an unexpected member is a fault of its object, with the name quoted", () => {
    const inner = object({ name: 'say "y"', type: "boolean" })
    const read = reading(object({ name: "in", ...inner }), { strict: true })
    assert.strictEqual(read('{"in":{}}'), String.raw`invalid arguments: in: missing required property "say \"y\""`)
    assert.strictEqual(
      read(String.raw`{"in":{"say \"y\"":true,"a\nb":1}}`),
      String.raw`invalid arguments: in: unexpected property "a\nb"`
    )
  })

  it("C190: how a value is shown", () => {
    const of = (text: string) =>
      field({ type: "boolean" }, text).replace("invalid arguments: x: expected boolean, got ", "")
    assert.strictEqual(of(String.raw`"a\"b\\\n\u0001€"`), String.raw`"a\"b\\\n\u0001€"`)
    assert.strictEqual(of("null"), "null")
    assert.strictEqual(of('{"a":{}}'), "object")
    assert.strictEqual(of("[[1]]"), "array")
    for (const number of ["2.0", "1E2", "12345678901234567890", "-0"]) assert.strictEqual(of(number), number)
  })

  it("C190: without the text a number is shown in its shortest form", () => {
    const check = ArgumentsCheck.make(object({ name: "x", type: "string" }))
    assert.strictEqual(check(JSON.parse('{"x":2.50}'))?.detail, "expected string, got 2.5")
    assert.strictEqual(check({ x: 2.5 }, "not the text")?.detail, "expected string, got 2.5")
    const deep = `{"x":2.50,"y":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
    assert.match(check(JSON.parse(deep), deep)?.detail ?? "", /^expected string, got 2\.50?$/)
  })

  it("C190: an enum lists its values in the same form", () => {
    assert.strictEqual(
      field({ type: "string", enum: ['a"b', "c"] }, "1"),
      String.raw`invalid arguments: x: expected one of ["a\"b", "c"], got 1`
    )
  })

  it("C179: names that every object inherits are ordinary members", () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"]
    for (const name of names) {
      const required = reading(object({ name, type: "string" }), { strict: true })
      assert.strictEqual(required("{}"), `invalid arguments: missing required property "${name}"`)
      assert.strictEqual(required(`{"${name}":"x"}`), "fine")
      assert.strictEqual(required(`{"${name}":1}`), `invalid arguments: ${name}: expected string, got 1`)
      const none = reading(object(), { strict: true })
      assert.strictEqual(none("{}"), "fine")
      assert.strictEqual(none(`{"${name}":1}`), `invalid arguments: unexpected property "${name}"`)
      const map = reading(object({ name: "m", type: "map", values: { type: "string" } }))
      assert.strictEqual(map('{"m":{}}'), "fine")
      assert.strictEqual(map(`{"m":{"${name}":1}}`), `invalid arguments: m.${name}: expected string, got 1`)
    }
  })

  it("C179: an undefined member, which has no JSON, is not there", () => {
    const check = ArgumentsCheck.make(object({ name: "x", type: "string" }), { strict: true })
    assert.strictEqual(check({ x: undefined })?.detail, 'missing required property "x"')
    assert.strictEqual(check({ x: "a", y: undefined }), undefined)
  })
})

describe("null as absent", () => {
  const shape = object(
    { name: "nullable", type: "string", optional: true, nullable: true },
    { name: "needed", type: "string", nullable: true },
    { name: "required", type: "string" },
    { name: "drop", type: "integer", optional: true },
    { name: "list", type: "array", items: object({ name: "drop", type: "string", optional: true }), optional: true },
    { name: "map", type: "map", values: object({ name: "drop", type: "string", optional: true }), optional: true },
    { name: "any", type: "any", optional: true, nullable: true }
  )
  const clean = ArgumentsCheck.nullAsAbsent(shape)

  it("C168: the null of an optional field is left out, nullable or not, at every depth", () => {
    assert.deepStrictEqual(
      clean({
        nullable: null,
        needed: null,
        required: null,
        drop: null,
        list: [{ drop: null }, { drop: "x", other: null }],
        map: { a: { drop: null }, b: { drop: "y" } },
        any: { drop: null },
        unknown: null
      }),
      {
        needed: null,
        required: null,
        list: [{}, { drop: "x", other: null }],
        map: { a: {}, b: { drop: "y" } },
        any: { drop: null },
        unknown: null
      }
    )
  })

  it("C168: without the setting the check refuses such a null, after it the value is fine", () => {
    const check = ArgumentsCheck.make(shape)
    for (const [name, type] of [
      ["drop", "integer"],
      ["nullable", "string"]
    ] as const) {
      const value = { needed: "", required: "x", [name]: null }
      assert.strictEqual(check(value)?.message, `invalid arguments: ${name}: expected ${type}, got null`)
      assert.strictEqual(check(clean(value)), undefined)
    }
  })

  it("C168: where there is no such null the value itself is given back", () => {
    const value = { required: "x", drop: 1, list: [{ drop: "x" }], map: { a: {} } }
    assert.strictEqual(clean(value), value)
    for (const other of [null, 1, "a", [null], { list: 1, map: [] }]) assert.strictEqual(clean(other), other)
    const nothing = { a: null }
    assert.strictEqual(ArgumentsCheck.nullAsAbsent(object({ name: "a", type: "any" }))(nothing), nothing)
  })

  it("C168: a member named __proto__ survives", () => {
    const value: unknown = JSON.parse('{"__proto__":{"a":null},"drop":null}')
    assert.strictEqual(JSON.stringify(clean(value)), '{"__proto__":{"a":null}}')
  })
})

describe("a failure of the decoder", () => {
  const Parameters = Schema.Struct({
    list: Schema.Array(Schema.Struct({ name: Schema.String.check(Schema.isMinLength(2)) })),
    when: Schema.optionalKey(Schema.Date)
  })
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(Parameters))
  const failure = (value: unknown) => Effect.map(Effect.flip(decode(value)), ArgumentsCheck.fromSchemaError)

  it.effect("C107 C188: has the path in the same form, and the decoder's words in one line", () =>
    Effect.gen(function* () {
      const short = yield* failure({ list: [{ name: "ab" }, { name: "a" }] })
      assert.strictEqual(short.path, "list[1].name")
      assert.strictEqual(short.message, "invalid arguments: list[1].name: Expected a value with a length of at least 2")
    })
  )

  it.effect("C179: a bad date is caught by the decoder", () =>
    Effect.gen(function* () {
      const date = yield* failure({ list: [], when: "yesterday" })
      assert.match(date.message, /^invalid arguments: when: \S/)
    })
  )

  it.effect("C107: a text of several lines becomes one", () =>
    Effect.gen(function* () {
      const schema = Schema.String.check(Schema.makeFilter(() => "first\n  second"))
      const error = yield* Effect.flip(Schema.decodeUnknownEffect(schema)("x"))
      assert.strictEqual(ArgumentsCheck.fromSchemaError(error).message, "invalid arguments: first second")
    })
  )
})

describe("properties of the check", () => {
  it.prop(
    "C178: any text is either parsed or refused with the prefix",
    { text: Arbitrary.schema(Schema.String) },
    ({ text }) => {
      const parsed = ArgumentsCheck.parse(text)
      if (Result.isFailure(parsed)) assert.match(parsed.failure.message, /^invalid arguments: not valid JSON: \S/)
    }
  )

  it.prop("C190: the value shown for a text is its JSON", { value: Arbitrary.schema(Schema.String) }, ({ value }) => {
    const found = ArgumentsCheck.make({ type: "integer" })(value)
    assert.strictEqual(found?.detail, `expected integer, got ${JSON.stringify(value)}`)
  })
})
