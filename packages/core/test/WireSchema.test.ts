import { assert, describe, it } from "@effect/vitest"
import * as Shape from "@agenttool/core/Shape"
import * as WireSchema from "@agenttool/core/WireSchema"
import { Effect, Result, Schema, SchemaGetter } from "effect"

/** The bytes of the schema of these parameters. */
const bytes = (schema: Schema.Constraint, options?: Shape.Options): string =>
  JSON.stringify(
    Result.getOrThrow(Result.flatMap(WireSchema.fromSchema(schema), (shape) => Shape.toJsonSchema(shape, options)))
  )

/** The bytes of the schema of one field `x`. */
const field = (schema: Schema.Constraint, options?: Shape.Options): string => {
  const text = bytes(Schema.Struct({ x: schema as Schema.Top }), options)
  const [, property] = /^\{"type":"object","properties":\{"x":(.*)\},"required":\["x"\].*\}$/.exec(text) ?? []
  return property ?? text
}

const refusal = (schema: Schema.Constraint, options?: Shape.Options): Shape.Refusal =>
  Result.getOrThrow(
    Result.flip(Result.flatMap(WireSchema.fromSchema(schema), (shape) => Shape.toJsonSchema(shape, options)))
  )

const output = (schema: Schema.Constraint): string =>
  JSON.stringify(Result.getOrThrow(WireSchema.anyFromSchema(schema)))

const ofShape = (shape: Shape.Shape, options?: Shape.Options): string =>
  JSON.stringify(Result.getOrThrow(Shape.toJsonSchema(shape, options)))

// Data from outside, which no compiler has seen.
const refusalOfData = (shape: unknown, options?: Shape.Options): Shape.Refusal =>
  Result.getOrThrow(Result.flip(Shape.toJsonSchema(shape as Shape.Shape, options)))

const Item = Schema.Struct({ name: Schema.String, Tags: Schema.Array(Schema.String) })

const ReadFile = Schema.Struct({
  path: Schema.String.pipe(Schema.annotateKey({ description: "Absolute path to read" })),
  max_bytes: Schema.optionalKey(Schema.Int).pipe(Schema.annotateKey({ description: "Stop after this many bytes" }))
})

const readFileBytes =
  '{"type":"object","properties":{"path":{"type":"string","description":"Absolute path to read"},' +
  '"max_bytes":{"type":"integer","description":"Stop after this many bytes"}},"required":["path"]}'

const Everything = Schema.Struct({
  str: Schema.String,
  int: Schema.Int.annotate({ description: "an integer" }),
  uint: Schema.Int,
  float: Schema.Finite,
  bool: Schema.Boolean,
  level: Schema.Literals(["low", "medium", "high"]),
  count: Schema.optionalKey(Schema.NullOr(Schema.Literals([1, 2, 3]))),
  when: Schema.Date,
  raw: Schema.optionalKey(Schema.Unknown),
  any: Schema.optionalKey(Schema.Json),
  bytes: Schema.optionalKey(Schema.Uint8Array),
  list: Schema.Array(Item),
  matrix: Schema.optionalKey(Schema.Array(Schema.Array(Schema.Finite))),
  nested: Item,
  pointer: Schema.optionalKey(Schema.NullOr(Item)),
  labels: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  duration: Schema.optionalKey(Schema.Int)
})

describe("the fixtures", () => {
  const item =
    '{"type":"object","properties":{"name":{"type":"string"},"Tags":{"type":"array","items":{"type":"string"}}},' +
    '"required":["name","Tags"]}'

  it("C165 C175: read_file", () => {
    assert.strictEqual(bytes(ReadFile), readFileBytes)
  })

  it("C169 C170 C175: read_file_strict: optional and not nullable becomes required", () => {
    assert.strictEqual(
      bytes(ReadFile, { strict: true }),
      '{"type":"object","properties":{"path":{"type":"string","description":"Absolute path to read"},' +
        '"max_bytes":{"type":"integer","description":"Stop after this many bytes"}},' +
        '"required":["path","max_bytes"],"additionalProperties":false}'
    )
  })

  it("C162 C166 C168 C175: everything", () => {
    assert.strictEqual(
      bytes(Everything),
      `{"type":"object","properties":{"str":{"type":"string"},"int":{"type":"integer","description":"an integer"},` +
        `"uint":{"type":"integer"},"float":{"type":"number"},"bool":{"type":"boolean"},` +
        `"level":{"type":"string","enum":["low","medium","high"]},"count":{"type":"integer","enum":[1,2,3]},` +
        `"when":{"type":"string","format":"date-time"},"raw":{},"any":{},"bytes":{"type":"string"},` +
        `"list":{"type":"array","items":${item}},` +
        `"matrix":{"type":"array","items":{"type":"array","items":{"type":"number"}}},` +
        `"nested":${item},"pointer":${item},` +
        `"labels":{"type":"object","additionalProperties":{"type":"string"}},"duration":{"type":"integer"}},` +
        `"required":["str","int","uint","float","bool","level","when","list","nested"]}`
    )
  })

  it("C169 C175: everything is refused under strict, because of its map", () => {
    assert.deepStrictEqual(refusal(Everything, { strict: true }), {
      path: "labels",
      reason: "maps cannot be expressed in a strict schema"
    })
  })

  it("C175: embedded", () => {
    class Embedded extends Schema.Class<Embedded>("Embedded")({
      ...Item.fields,
      extra: Schema.optionalKey(Schema.String)
    }) {}
    assert.strictEqual(
      bytes(Embedded),
      '{"type":"object","properties":{"name":{"type":"string"},"Tags":{"type":"array","items":{"type":"string"}},' +
        '"extra":{"type":"string"}},"required":["name","Tags"]}'
    )
  })

  it("C166 C169 C175: strict", () => {
    const schema = Schema.Struct({
      query: Schema.String.annotate({ description: "Search terms" }),
      limit: Schema.optionalKey(Schema.NullOr(Schema.Int)).pipe(Schema.annotateKey({ description: "Maximum results" })),
      inner: Schema.Struct({ deep: Schema.Boolean })
    })
    assert.strictEqual(
      bytes(schema, { strict: true }),
      '{"type":"object","properties":{"query":{"type":"string","description":"Search terms"},' +
        '"limit":{"type":["integer","null"],"description":"Maximum results"},' +
        '"inner":{"type":"object","properties":{"deep":{"type":"boolean"}},"required":["deep"],"additionalProperties":false}},' +
        '"required":["query","limit","inner"],"additionalProperties":false}'
    )
  })

  it("C164 C175: no_args and no_args_strict", () => {
    assert.strictEqual(bytes(Schema.Struct({})), '{"type":"object","properties":{},"required":[]}')
    assert.strictEqual(
      bytes(Schema.Struct({}), { strict: true }),
      '{"type":"object","properties":{},"required":[],"additionalProperties":false}'
    )
  })

  it("C175: text_marshaler: what is coded as text is a string", () => {
    const schema = Schema.Struct({ key: Schema.URL })
    assert.strictEqual(bytes(schema), '{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}')
  })

  it("C175: pointer_to_struct: a shape by hand gives the bytes of read_file", () => {
    assert.strictEqual(
      ofShape({
        type: "object",
        fields: [
          { name: "path", type: "string", description: "Absolute path to read" },
          { name: "max_bytes", type: "integer", optional: true, description: "Stop after this many bytes" }
        ]
      }),
      readFileBytes
    )
  })

  it("C175: shadowed", () => {
    const schema = Schema.Struct({ Memo: Schema.String, id: Schema.String.annotate({ description: "outer wins" }) })
    assert.strictEqual(
      bytes(schema),
      '{"type":"object","properties":{"Memo":{"type":"string"},"id":{"type":"string","description":"outer wins"}},' +
        '"required":["Memo","id"]}'
    )
  })

  it("C171 C175: json_marshaler", () => {
    const schema = Schema.Struct({ value: Schema.Unknown, word: Schema.Literals([1, 2]) })
    assert.strictEqual(
      bytes(schema),
      '{"type":"object","properties":{"value":{},"word":{"type":"integer","enum":[1,2]}},"required":["value","word"]}'
    )
  })

  it("C166 C169 C175: strict_nullable", () => {
    const schema = Schema.Struct({
      level: Schema.optionalKey(Schema.NullOr(Schema.Literals(["low", "high"]))),
      raw: Schema.optionalKey(Schema.NullOr(Schema.Unknown)),
      when: Schema.optionalKey(Schema.NullOr(Schema.Date)),
      items: Schema.Array(Item)
    })
    assert.strictEqual(
      bytes(schema, { strict: true }),
      '{"type":"object","properties":{"level":{"type":["string","null"],"enum":["low","high",null]},"raw":{},' +
        '"when":{"type":["string","null"],"format":"date-time"},' +
        '"items":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},' +
        '"Tags":{"type":"array","items":{"type":"string"}}},"required":["name","Tags"],"additionalProperties":false}}},' +
        '"required":["level","raw","when","items"],"additionalProperties":false}'
    )
  })

  it("C175: byte_array", () => {
    const schema = Schema.Struct({ slice: Schema.Uint8Array, fixed: Schema.Array(Schema.Int) })
    assert.strictEqual(
      bytes(schema),
      '{"type":"object","properties":{"slice":{"type":"string"},"fixed":{"type":"array","items":{"type":"integer"}}},' +
        '"required":["slice","fixed"]}'
    )
  })
})

describe("the encoded side", () => {
  class User extends Schema.Class<User>("User")({ id: Schema.String }) {}

  it.each([
    ["boolean", Schema.Boolean, '{"type":"boolean"}'],
    ["string", Schema.String, '{"type":"string"}'],
    ["number", Schema.Number, '{"type":"number"}'],
    ["finite number", Schema.Finite, '{"type":"number"}'],
    ["integer", Schema.Int, '{"type":"integer"}'],
    ["branded integer", Schema.Int.pipe(Schema.brand("Port")), '{"type":"integer"}'],
    ["date", Schema.Date, '{"type":"string","format":"date-time"}'],
    ["date from a string", Schema.DateFromString, '{"type":"string","format":"date-time"}'],
    ["UTC time", Schema.DateTimeUtc, '{"type":"string","format":"date-time"}'],
    ["UTC time from a date", Schema.DateTimeUtcFromDate, '{"type":"string","format":"date-time"}'],
    ["UTC time from a string", Schema.DateTimeUtcFromString, '{"type":"string","format":"date-time"}'],
    [
      "text said to be a time",
      Schema.String.annotate({ format: "date-time" }),
      '{"type":"string","format":"date-time"}'
    ],
    ["date from milliseconds", Schema.DateFromMillis, '{"type":"integer"}'],
    ["HTTP date", Schema.DateTimeUtcFromHttpDate, '{"type":"string"}'],
    ["zoned time", Schema.DateTimeZoned, '{"type":"string"}'],
    ["bytes", Schema.Uint8Array, '{"type":"string"}'],
    ["bytes from base64", Schema.Uint8ArrayFromBase64, '{"type":"string"}'],
    ["number from a string", Schema.FiniteFromString.check(Schema.isGreaterThan(5)), '{"type":"string"}'],
    ["bigint from a string", Schema.BigIntFromString, '{"type":"string","pattern":"^-?\\\\d+$"}'],
    ["secret", Schema.Redacted(Schema.String), '{"type":"string"}'],
    ["JSON text", Schema.fromJsonString(Schema.Unknown), '{"type":"string"}'],
    ["unknown", Schema.Unknown, "{}"],
    ["any", Schema.Any, "{}"],
    ["JSON", Schema.Json, "{}"],
    ["mutable array", Schema.mutable(Schema.Array(Schema.Unknown)), '{"type":"array","items":{}}'],
    ["map", Schema.Record(Schema.String, Schema.Finite), '{"type":"object","additionalProperties":{"type":"number"}}'],
    [
      "record of known keys",
      Schema.Record(Schema.Literals(["b", "a"]), Schema.Boolean),
      '{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"boolean"}},"required":["b","a"]}'
    ],
    ["class", User, '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}'],
    [
      "type of a class",
      Schema.toType(User),
      '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}'
    ],
    [
      "opaque struct",
      class Opaque extends Schema.Opaque<Opaque>()(Schema.Struct({ a: Schema.String })) {},
      '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}'
    ],
    ["chunk of dates", Schema.Chunk(Schema.Date), '{"type":"array","items":{"type":"string","format":"date-time"}}'],
    ["union of one", Schema.Union([Schema.String]), '{"type":"string"}']
  ] satisfies ReadonlyArray<readonly [string, Schema.Constraint, string]>)("C162: %s", (_name, schema, expected) => {
    assert.strictEqual(field(schema), expected)
  })

  it("C161: fields stand in the order of the declaration, under their encoded names", () => {
    const schema = Schema.Struct({ zeta: Schema.String, alpha: Schema.optionalKey(Schema.Int) }).pipe(
      Schema.encodeKeys({ zeta: "z-e-t-a" })
    )
    assert.strictEqual(
      bytes(schema),
      '{"type":"object","properties":{"z-e-t-a":{"type":"string"},"alpha":{"type":"integer"}},"required":["z-e-t-a"]}'
    )
  })

  it("C161: a field named __proto__ is a field", () => {
    assert.strictEqual(
      bytes(Schema.Struct({ ["__proto__"]: Schema.String, constructor: Schema.Boolean })),
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"boolean"}},"required":["__proto__","constructor"]}'
    )
  })

  const slot = (schema: Schema.Top) => {
    const shape = Result.getOrThrow(WireSchema.fromSchema(Schema.Struct({ x: schema })))
    const { nullable = false, optional = false } = shape.fields[0] ?? {}
    return `${optional ? "optional" : "required"}${nullable ? " nullable" : ""}`
  }

  it.each([
    ["plain", Schema.String, "required"],
    ["optionalKey", Schema.optionalKey(Schema.String), "optional"],
    ["optionalKey of a date", Schema.optionalKey(Schema.Date), "optional"],
    ["optional: an undefined has no JSON", Schema.optional(Schema.String), "optional"],
    ["NullOr", Schema.NullOr(Schema.String), "required nullable"],
    ["optionalKey of NullOr", Schema.optionalKey(Schema.NullOr(Schema.String)), "optional nullable"],
    ["optional of NullOr", Schema.optional(Schema.NullOr(Schema.String)), "optional nullable"],
    ["UndefinedOr: its undefined is a null", Schema.UndefinedOr(Schema.String), "required nullable"],
    ["NullishOr", Schema.NullishOr(Schema.String), "required nullable"],
    ["option from NullOr", Schema.OptionFromNullOr(Schema.String), "required nullable"],
    ["option from an optional key", Schema.OptionFromOptionalKey(Schema.String), "optional"],
    ["a default for the key", Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))), "optional"],
    ["a default", Schema.Int.pipe(Schema.withDecodingDefault(Effect.succeed(1))), "optional"]
  ] satisfies ReadonlyArray<readonly [string, Schema.Top, string]>)("C161 C168: %s", (_name, schema, expected) => {
    assert.strictEqual(slot(schema), expected)
  })

  it("C168: outside strict a nullable field that is not optional is required, and its null is not shown", () => {
    assert.strictEqual(
      bytes(Schema.Struct({ x: Schema.NullOr(Schema.Literals(["a"])) })),
      '{"type":"object","properties":{"x":{"type":"string","enum":["a"]}},"required":["x"]}'
    )
  })

  it("C169: objects are closed under strict wherever they are, arrays included", () => {
    assert.strictEqual(
      field(Schema.Array(Schema.Struct({ y: Schema.Array(Schema.Struct({})) })), { strict: true }),
      '{"type":"array","items":{"type":"object","properties":{"y":{"type":"array","items":' +
        '{"type":"object","properties":{},"required":[],"additionalProperties":false}}},' +
        '"required":["y"],"additionalProperties":false}}'
    )
  })

  it("C163 C165: a schema that is used twice is written out twice", () => {
    const Named = Item.annotate({ identifier: "Item", title: "An item", examples: [] })
    const text = bytes(Schema.Struct({ a: Named, b: Named }))
    const item =
      '{"type":"object","properties":{"name":{"type":"string"},"Tags":{"type":"array","items":{"type":"string"}}},"required":["name","Tags"]}'
    assert.strictEqual(text, `{"type":"object","properties":{"a":${item},"b":${item}},"required":["a","b"]}`)
  })
})

describe("descriptions", () => {
  const described = (text: string) => ({ description: text })

  it("C167: stand on the field's own schema, and an empty one is left out", () => {
    assert.strictEqual(field(Schema.String.annotate(described(""))), '{"type":"string"}')
    assert.strictEqual(
      field(Schema.Array(Item.fields.name).annotate(described("all names"))),
      '{"type":"array","description":"all names","items":{"type":"string"}}'
    )
    assert.strictEqual(field(Schema.Unknown.annotate(described("free"))), '{"description":"free"}')
    assert.strictEqual(
      field(Schema.Literals(["a"]).annotate(described("one"))),
      '{"type":"string","description":"one","enum":["a"]}'
    )
  })

  it("C167: what is said of the key comes before what is said of the schema", () => {
    const schema = Schema.String.annotate(described("schema")).pipe(Schema.annotateKey(described("key")))
    assert.strictEqual(field(schema), '{"type":"string","description":"key"}')
  })

  it.each([
    ["of a schema with checks", Schema.String.check(Schema.isPattern(/a/i)).annotate(described("d"))],
    ["before the checks", Schema.String.annotate(described("d")).check(Schema.isPattern(/a/i))],
    [
      "of the last of several checks",
      Schema.String.check(Schema.isPattern(/a/i, { description: "first" }), Schema.isPattern(/b/i, described("d")))
    ],
    ["of a transformation", Schema.FiniteFromString.annotate(described("d"))],
    ["of the encoded side", Schema.FiniteFromString.pipe(Schema.annotateEncoded(described("d")))],
    ["inside NullOr", Schema.NullOr(Schema.String.annotate(described("d")))],
    ["of NullOr", Schema.NullOr(Schema.String.annotate(described("inner"))).annotate(described("d"))],
    [
      "before a default",
      Schema.String.annotate(described("d")).pipe(Schema.withDecodingDefaultKey(Effect.succeed("")))
    ],
    [
      "after a default",
      Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("")), Schema.annotate(described("d")))
    ]
  ] satisfies ReadonlyArray<readonly [string, Schema.Constraint]>)("C167: %s", (_name, schema) => {
    assert.include(bytes(Schema.Struct({ x: schema as Schema.Top })), '"x":{"type":"string","description":"d"}')
  })

  it("C167: a date's stands before its format", () => {
    assert.strictEqual(
      field(Schema.Date.annotate(described("d"))),
      '{"type":"string","description":"d","format":"date-time"}'
    )
  })

  it("C167: at the root there is none, the tool has its own", () => {
    assert.strictEqual(
      bytes(Schema.Struct({}).annotate(described("d"))),
      '{"type":"object","properties":{},"required":[]}'
    )
  })
})

describe("enums", () => {
  it.each([
    ["strings", Schema.Literals(["b", "a"]), '{"type":"string","enum":["b","a"]}'],
    ["one literal", Schema.Literal("a"), '{"type":"string","enum":["a"]}'],
    ["whole numbers", Schema.Literals([2, 1]), '{"type":"integer","enum":[2,1]}'],
    ["numbers", Schema.Literals([1, 2.5]), '{"type":"number","enum":[1,2.5]}'],
    ["booleans", Schema.Literals([true, false]), '{"type":"boolean","enum":[true,false]}'],
    ["an enum", Schema.Enum({ B: "b", A: "a" }), '{"type":"string","enum":["b","a"]}'],
    [
      "unions of unions",
      Schema.Union([Schema.Literals(["c", "a"]), Schema.Literal("b"), Schema.Literal("a")]),
      '{"type":"string","enum":["c","a","b"]}'
    ],
    ["items", Schema.Array(Schema.Literals(["a"])), '{"type":"array","items":{"type":"string","enum":["a"]}}']
  ] satisfies ReadonlyArray<readonly [string, Schema.Constraint, string]>)(
    "C166 C171: %s, in the order declared, typed by the field",
    (_name, schema, expected) => {
      assert.strictEqual(field(schema), expected)
    }
  )

  it.each([
    ["integer", 1.5],
    ["integer", "1"],
    ["number", "1"],
    ["boolean", "true"],
    ["string", 1]
  ])("C171 C172: an enum of type %s takes no %s", (type, value) => {
    const { path, reason } = refusalOfData({ type: "object", fields: [{ name: "x", type, enum: [value] }] })
    assert.strictEqual(path, "x")
    assert.include(reason, "enum value")
    assert.include(reason, type)
  })

  it.each([
    { type: "any" },
    { type: "array", items: { type: "string" } },
    { type: "map", values: { type: "string" } },
    { type: "object", fields: [] }
  ])("C171: an enum on type $type is refused", (shape) => {
    assert.include(refusalOfData({ ...shape, enum: ["a"] }).reason, "enum value")
  })
})

describe("what is refused", () => {
  interface Category {
    readonly name: string
    readonly children: ReadonlyArray<Category>
  }
  const Category: Schema.Codec<Category> = Schema.Struct({
    name: Schema.String,
    children: Schema.Array(Schema.suspend((): Schema.Codec<Category> => Category))
  })
  const inList = (schema: Schema.Constraint) =>
    Schema.Struct({ list: Schema.Array(Schema.Struct({ name: schema as Schema.Top })) })

  it.each([
    ["a tuple", Schema.Tuple([Schema.String, Schema.Int]), "unsupported type: a tuple"],
    ["the empty tuple", Schema.Tuple([]), "unsupported type: a tuple"],
    [
      "a tuple with a rest",
      Schema.TupleWithRest(Schema.Tuple([Schema.Int]), [Schema.String]),
      "unsupported type: a tuple"
    ],
    ["a union", Schema.Union([Schema.String, Schema.Int]), "unsupported type: a union of string and number"],
    [
      "a union of structs",
      Schema.Union([Item, Schema.Struct({})]),
      "unsupported type: a union of an object and an object"
    ],
    ["literals of two types", Schema.Literals(["a", 1]), "unsupported type: enum values of type string and number"],
    ["a literal beside its type", Schema.Union([Schema.Literal("a"), Schema.Int]), "unsupported type: a union"],
    ["a template literal", Schema.TemplateLiteral(["a", Schema.String]), "unsupported type: a template literal"],
    ["bigint", Schema.BigInt, "unsupported type: bigint"],
    ["a bigint literal", Schema.Literal(1n), "unsupported type: enum values of type bigint"],
    ["symbol", Schema.Symbol, "unsupported type: symbol"],
    ["a unique symbol", Schema.UniqueSymbol(Symbol.for("a")), "unsupported type: symbol"],
    ["a function", Schema.instanceOf(Function), "unsupported type: a declaration without a JSON codec"],
    ["an opaque type", Schema.declare((value): value is string => value === "x"), "unsupported type: a declaration"],
    ["any object", Schema.ObjectKeyword, "unsupported type: any object"],
    ["null alone", Schema.Null, "unsupported type: null"],
    ["undefined alone", Schema.Undefined, "unsupported type: null"],
    ["void", Schema.Void, "unsupported type: void"],
    ["never", Schema.Never, "unsupported type: never"],
    ["a symbol as a key", Schema.Struct({ [Symbol.for("a")]: Schema.String }), "unsupported type: a member whose name"],
    [
      "fields and a map",
      Schema.StructWithRest(Schema.Struct({ a: Schema.String }), [Schema.Record(Schema.String, Schema.String)]),
      "unsupported type: an object with fields and"
    ],
    ["a map with number keys", Schema.Record(Schema.Number, Schema.String), "map key must be a string"],
    ["a map with symbol keys", Schema.Record(Schema.Symbol, Schema.String), "map key must be a string"],
    [
      "a map with keys of a template",
      Schema.Record(Schema.TemplateLiteral(["a", Schema.String]), Schema.String),
      "map key must be a string"
    ],
    ["a suspended schema", Schema.suspend(() => Schema.String), "recursive"]
  ] satisfies ReadonlyArray<readonly [string, Schema.Constraint, string]>)(
    "C17 C172: %s, with the path to it",
    (_name, schema, fragment) => {
      const { path, reason } = refusal(inList(schema))
      assert.strictEqual(path, "list[].name")
      assert.include(reason, fragment)
    }
  )

  it("C163 C172: a schema that contains itself", () => {
    assert.strictEqual(refusal(Category).path, "children[]")
    assert.include(refusal(Category).reason, "recursive")
  })

  it("C163 C172: a shape that contains itself", () => {
    const fields: Array<Shape.Field> = [{ name: "name", type: "string" }]
    const shape: Shape.Shape = { type: "object", fields }
    fields.push({ name: "children", type: "array", items: shape })
    assert.deepStrictEqual(refusalOfData(shape), {
      path: "children[]",
      reason: "recursive: a shape must not contain itself"
    })
    const twice: Shape.Shape = { type: "string" }
    const other = ofShape({
      type: "array",
      items: {
        type: "object",
        fields: [
          { name: "a", type: "array", items: twice },
          { name: "b", type: "array", items: twice }
        ]
      }
    })
    assert.include(other, '"b":{"type":"array"')
  })

  it.each([
    ["a string", Schema.String],
    ["an array", Schema.Array(Schema.String)],
    ["a map", Schema.Record(Schema.String, Schema.String)],
    ["a union of structs", Schema.Union([Item, Schema.Struct({})])],
    ["a struct or null", Schema.NullOr(Item)],
    ["unknown", Schema.Unknown]
  ] satisfies ReadonlyArray<readonly [string, Schema.Constraint]>)("C172: a root that is %s", (_name, schema) => {
    const { path, reason } = refusal(schema)
    assert.strictEqual(path, "")
    assert.include(reason, "arguments must be an object")
  })

  it("C161 C172: items and map values that may be null", () => {
    const nullable = Schema.NullOr(Schema.String)
    assert.deepStrictEqual(refusal(Schema.Struct({ x: Schema.Array(nullable) })), {
      path: "x[]",
      reason: "unsupported type: only a field may be nullable"
    })
    assert.strictEqual(refusal(Schema.Struct({ x: Schema.Record(Schema.String, nullable) })).path, "x{}")
  })

  it("C169 C172: a map under strict, at any depth", () => {
    const deep = Schema.Struct({ a: Schema.Array(Schema.Struct({ b: Schema.Record(Schema.String, Schema.String) })) })
    assert.deepStrictEqual(refusal(deep, { strict: true }), {
      path: "a[].b",
      reason: "maps cannot be expressed in a strict schema"
    })
  })

  it.each([
    { type: "strnig" },
    { type: "array" },
    { type: "map" },
    { type: "object" },
    { type: "array", items: { type: "array", items: null } },
    {
      type: "object",
      fields: [
        { name: "a", type: "string" },
        { name: "a", type: "integer" }
      ]
    }
  ])("C172: data that is no shape: %j", (shape) => {
    assert.match(refusalOfData({ type: "object", fields: [{ name: "x", ...shape }] }).path, /^x/)
  })
})

describe("constraints", () => {
  const utf16 = (n: number) => Schema.String.check(Schema.isMinLength(n))
  const strings = Schema.Array(Schema.String)

  it.each([
    [
      "a range",
      Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 14 })),
      '{"type":"number","minimum":1,"maximum":14}'
    ],
    [
      "an integer with a range",
      Schema.Int.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(9)),
      '{"type":"integer","exclusiveMinimum":0,"maximum":9}'
    ],
    ["32 bits", Schema.Number.check(Schema.isInt32()), '{"type":"integer","minimum":-2147483648,"maximum":2147483647}'],
    ["a divisor", Schema.Finite.check(Schema.isMultipleOf(5)), '{"type":"number","multipleOf":5}'],
    [
      "the tighter of two bounds",
      Schema.Finite.check(Schema.isGreaterThanOrEqualTo(3), Schema.isGreaterThanOrEqualTo(1)),
      '{"type":"number","minimum":3}'
    ],
    ["the empty text excluded", Schema.NonEmptyString, '{"type":"string","minLength":1}'],
    [
      "code points",
      Schema.String.check(Schema.isBetweenCodePoints(2, 4)),
      '{"type":"string","minLength":2,"maxLength":4}'
    ],
    ["UTF-16 units, a weaker bound in code points", utf16(3), '{"type":"string","minLength":2}'],
    ["at most so many units", Schema.String.check(Schema.isMaxLength(3)), '{"type":"string","maxLength":3}'],
    ["a pattern", Schema.String.check(Schema.isPattern(/^\d{5}$/u)), '{"type":"string","pattern":"^\\\\d{5}$"}'],
    ["a start", Schema.String.check(Schema.isStartingWith("a.")), '{"type":"string","pattern":"^a\\\\."}'],
    [
      "the first of two patterns",
      Schema.String.check(Schema.isPattern(/^a/u), Schema.isPattern(/b$/u)),
      '{"type":"string","pattern":"^a"}'
    ],
    [
      "items",
      strings.check(Schema.isMinLength(1), Schema.isMaxLength(3)),
      '{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}'
    ],
    [
      "items that are transformed",
      Schema.Array(Schema.FiniteFromString).check(Schema.isMinLength(2)),
      '{"type":"array","items":{"type":"string"},"minItems":2}'
    ],
    [
      "an array that is not empty",
      Schema.NonEmptyArray(Schema.String),
      '{"type":"array","items":{"type":"string"},"minItems":1}'
    ],
    [
      "unique items",
      Schema.UniqueArray(Schema.String),
      '{"type":"array","items":{"type":"string"},"uniqueItems":true}'
    ],
    [
      "members of a map",
      Schema.Record(Schema.String, Schema.Int).check(Schema.isMinProperties(1)),
      '{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1}'
    ],
    [
      "members of a map whose other keys are dropped",
      Schema.Record(Schema.String.check(Schema.isPattern(/^a/u)), Schema.Int).check(Schema.isMaxProperties(1)),
      '{"type":"object","additionalProperties":{"type":"integer"}}'
    ],
    ["a check of the author's", Schema.Finite.check(Schema.makeFilter((n) => n % 2 === 0)), '{"type":"number"}'],
    [
      "a check of the author's that knows its keyword",
      Schema.Finite.check(
        Schema.makeFilter((n) => n < 7, { toJsonSchema: () => ({ exclusiveMaximum: 7, format: "small" }) })
      ),
      '{"type":"number","exclusiveMaximum":7}'
    ],
    [
      "a description before them",
      Schema.Finite.check(Schema.isGreaterThan(1)).annotate({ description: "d" }),
      '{"type":"number","description":"d","exclusiveMinimum":1}'
    ]
  ] satisfies ReadonlyArray<readonly [string, Schema.Constraint, string]>)("C165: %s", (_name, schema, expected) => {
    assert.strictEqual(field(schema), expected)
  })

  it("C165: of several bounds the tightest", () => {
    const schema = Schema.String.check(
      Schema.isMinCodePoints(4),
      Schema.isMinCodePoints(2),
      Schema.isMaxLength(8),
      Schema.isMaxLength(9)
    )
    assert.strictEqual(field(schema), '{"type":"string","minLength":4,"maxLength":8}')
  })

  const says = (fragment: Record<string, unknown>) => Schema.makeFilter(() => true, { toJsonSchema: () => fragment })

  it("C165: what the author says of a check, where it can stand in a schema", () => {
    assert.strictEqual(field(Schema.Finite.check(says({ minimum: Number.NEGATIVE_INFINITY }))), '{"type":"number"}')
    assert.strictEqual(field(Schema.String.check(says({ pattern: String.raw`a\-b` }))), '{"type":"string"}')
    assert.strictEqual(field(Schema.String.check(says({ minimum: 1, $ref: "#" }))), '{"type":"string"}')
    const both = Schema.makeFilterGroup([Schema.isMinLength(1), Schema.isMaxLength(5)], {
      toJsonSchema: () => ({ maxLength: 4 })
    })
    assert.strictEqual(field(Schema.String.check(both)), '{"type":"string","maxLength":4}')
  })

  it("C165: not under strict", () => {
    assert.strictEqual(field(utf16(3), { strict: true }), '{"type":"string"}')
    assert.strictEqual(
      field(Schema.NonEmptyArray(Schema.Int), { strict: true }),
      '{"type":"array","items":{"type":"integer"}}'
    )
  })

  it("C165: a check of the decoded side says nothing of the JSON", () => {
    const schema = Schema.String.pipe(
      Schema.decodeTo(Schema.String.check(Schema.isMaxLength(2)), {
        decode: SchemaGetter.transform((text: string) => text.slice(0, 2)),
        encode: SchemaGetter.passthrough()
      })
    )
    assert.strictEqual(field(schema), '{"type":"string"}')
    assert.strictEqual(
      bytes(Schema.Struct({ a: Schema.String }).check(Schema.isMaxProperties(1))).includes("Properties"),
      false
    )
  })

  it.each([
    [/^[a-z]+$/, true],
    [/^\d{3}-\d{4}$/, true],
    [/^[^@\s]+@[^@\s]+\.[^@\s]+$/, true],
    [/^(?:[^/]+\/)*[^/]+$/, true],
    [/^a.*b$/, true],
    [/^.+$/g, true],
    [/\u00e9/, true],
    [/a/i, false],
    [/^a$/m, false],
    [/a.b/s, false],
    [/a/y, false],
    [/^..$/, false],
    [/^.{2,3}$/, false],
    [/^[^a]$/, false],
    [/^.+.+$/, false],
    [/^\S\S$/, false],
    [/^[\s\S]{2}$/, false],
    [/^(.+)(.+)$/, false],
    [/^.+b?.+$/, false],
    [/^😀+$/, false],
    [/^\ud83d/, false],
    [/x.*\B.+y/, false]
  ])("C165: a pattern without the flag u is shown only where it means the same with it: %s", (expression, isShown) => {
    const expected = isShown ? `{"type":"string","pattern":${JSON.stringify(expression.source)}}` : '{"type":"string"}'
    assert.strictEqual(field(Schema.String.check(Schema.isPattern(expression))), expected)
  })

  // As text: in a literal these escapes are a mistake, which is just why they need a look.
  it.each([String.raw`^\p{2}$`, String.raw`^\u{2}$`, String.raw`a\-b`, String.raw`\k<a>`])(
    "C165: a pattern that is only valid, or another one, without the flag u is not shown: %s",
    (source) => {
      assert.strictEqual(field(Schema.String.check(Schema.isPattern(new RegExp(source)))), '{"type":"string"}')
    }
  )

  it("C165: keywords by hand stand in one order, after all other members", () => {
    assert.strictEqual(
      ofShape({
        constraints: { maxLength: 3, pattern: "a", minLength: 1 },
        enum: ["a"],
        format: "date-time",
        description: "d",
        type: "string"
      }),
      '{"type":"string","description":"d","format":"date-time","enum":["a"],"minLength":1,"maxLength":3,"pattern":"a"}'
    )
  })
})

describe("the schema of an output", () => {
  it("C162: may have any root", () => {
    assert.strictEqual(output(Schema.Array(Schema.Finite)), '{"type":"array","items":{"type":"number"}}')
    assert.strictEqual(output(Schema.String.annotate({ description: "d" })), '{"type":"string","description":"d"}')
    assert.strictEqual(
      output(Schema.Record(Schema.String, Item)).slice(0, 40),
      '{"type":"object","additionalProperties":'
    )
    assert.strictEqual(output(Schema.Literals(["a"])), '{"type":"string","enum":["a"]}')
  })

  it("C162: shows every null that the codec writes", () => {
    const schema = Schema.Struct({
      a: Schema.NullOr(Schema.Literals([1])),
      b: Schema.optionalKey(Schema.Int),
      c: Schema.optional(Schema.Int)
    })
    assert.strictEqual(
      output(schema),
      '{"type":"object","properties":{"a":{"type":["integer","null"],"enum":[1,null]},"b":{"type":"integer"},' +
        '"c":{"type":["integer","null"]}},"required":["a"]}'
    )
    assert.strictEqual(
      JSON.stringify(Schema.encodeSync(Schema.toCodecJson(schema))({ a: null, c: undefined })),
      '{"a":null,"c":null}'
    )
  })

  it("C172: is refused where there is no shape", () => {
    const made = WireSchema.anyFromSchema(Schema.Array(Schema.BigInt))
    assert.deepStrictEqual(Result.isFailure(made) ? made.failure : undefined, {
      path: "[]",
      reason: "unsupported type: bigint"
    })
    assert.isTrue(Result.isFailure(WireSchema.anyFromSchema(Schema.NullOr(Schema.String))))
  })
})
