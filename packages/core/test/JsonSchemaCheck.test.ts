import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import * as JsonSchemaCheck from "@agenttool/core/JsonSchemaCheck"

type Json = Schema.JsonObject

const words = (schema: Json, value: unknown): string | undefined =>
  Result.match(JsonSchemaCheck.compile(schema), {
    onFailure: (error) => `refused: ${error.message}`,
    onSuccess: (compiled) => (compiled._tag === "Checked" ? compiled.check(value) : `unchecked: ${compiled.dialect}`)
  })

const refusal = (schema: Json): string | undefined =>
  Result.match(JsonSchemaCheck.compile(schema), {
    onFailure: (error) => {
      assert.strictEqual(error._tag, "JsonSchemaError")
      assert.strictEqual(error.message, error.reason)
      assert.notInclude(error.message, "\n")
      return error.message
    },
    onSuccess: () => undefined
  })

/** `{"c":{"c": … leaf … }}`, built without recursion. */
const nested = (levels: number, key = "c", leaf: unknown = 1): unknown =>
  Array.from({ length: levels }).reduce((inner: unknown) => ({ [key]: inner }), leaf)

/** Runs with the clock in hand: a schema or a value that hangs the check fails the test. */
const within = <A>(limit: number, run: () => A): A => {
  const from = performance.now()
  const result = run()
  assert.isBelow(performance.now() - from, limit)
  return result
}

describe("JsonSchemaCheck", () => {
  it("C192: the no-arguments schema accepts any object, and nothing else", () => {
    const schema = { type: "object", properties: {}, required: [] }
    assert.isUndefined(words(schema, { anything: [1, 2] }))
    assert.isUndefined(words(schema, {}))
    assert.strictEqual(words(schema, [1]), "must be object")
    assert.strictEqual(words(schema, null), "must be object")
  })

  it("C193, M4: draft-07 and 2020-12 are told apart, however $schema is spelt", () => {
    const spellings = (path: string) => [
      `http://json-schema.org/${path}`,
      `https://json-schema.org/${path}`,
      `http://json-schema.org/${path}#`,
      `https://json-schema.org/${path}#`,
      `HTTPS://JSON-Schema.org/${path}#`
    ]
    // A list of items is positions in draft-07; in 2020-12 it is no schema at all, and `prefixItems` says it.
    for (const $schema of spellings("draft-07/schema")) {
      assert.strictEqual(words({ $schema, items: [{ type: "string" }] }, [1]), "[0]: must be string", $schema)
      assert.isUndefined(words({ $schema, prefixItems: [{ type: "string" }] }, [1]), $schema)
    }
    for (const $schema of [undefined, ...spellings("draft/2020-12/schema")]) {
      const dialect = $schema === undefined ? {} : { $schema }
      assert.strictEqual(words({ ...dialect, prefixItems: [{ type: "string" }] }, [1]), "[0]: must be string", $schema)
      assert.match(refusal({ ...dialect, items: [{ type: "string" }] }) ?? "", /^items: /, $schema)
    }
  })

  it("C193: a schema of another dialect is not checked, and says which dialect it is", () => {
    for (const dialect of ["http://example.com/unknown", "http://json-schema.org/draft-04/schema#"]) {
      const compiled = Result.getOrThrow(JsonSchemaCheck.compile({ $schema: dialect, type: 5 }))
      assert.deepStrictEqual(compiled, { _tag: "Unchecked", dialect })
    }
    assert.strictEqual(refusal({ $schema: 5 }), "$schema: must be a string")
  })

  it("C194: a schema that is no schema is refused, with the path of the fault", () => {
    assert.match(refusal({ type: 5 }) ?? "", /^type: must /)
    assert.match(refusal({ properties: { a: { type: "strin" } } }) ?? "", /^properties\.a\.type: must .*"string"/)
    assert.strictEqual(refusal({ required: "a" }), "required: must be array")
    assert.strictEqual(refusal({ allOf: [] }), "allOf: must NOT have fewer than 1 items")
    assert.strictEqual(refusal({ properties: { a: { minLength: -1 } } }), "properties.a.minLength: must be >= 0")
    assert.match(refusal({ properties: { a: { pattern: "(" } } }) ?? "", /^"\(" is no usable pattern: .*Unterminated/)
  })

  it("C194: a $ref to nothing is refused, also where nothing leads to it", () => {
    const at = (target: string) => refusal({ properties: { a: { $ref: target } } })
    assert.strictEqual(at("#/$defs/x"), 'properties.a.$ref: "#/$defs/x" leads to nothing')
    assert.strictEqual(at("#anchor"), 'properties.a.$ref: "#anchor" leads to nothing')
    assert.strictEqual(at("#/properties"), undefined) // a place that happens to be an object
    assert.strictEqual(at("#/%"), 'properties.a.$ref: "#/%" leads to nothing')
    assert.strictEqual(refusal({ $defs: { a: { $ref: "#/nope" } } }), '$defs.a.$ref: "#/nope" leads to nothing')
    // What a $ref leads to is a schema too, even where no keyword does.
    const beside = { $ref: "#/components/A", components: { A: { $ref: "#/components/B" } } }
    assert.strictEqual(refusal(beside), '#/components/A.$ref: "#/components/B" leads to nothing')
  })

  it("C196, P76: a $ref to another document is refused, never fetched", () => {
    assert.strictEqual(
      refusal({ properties: { a: { $ref: "https://example.com/x.json" } } }),
      'properties.a.$ref: "https://example.com/x.json" is not in this schema, and other documents are not fetched'
    )
    assert.include(refusal({ $id: "https://example.com/a/", $ref: "b" }) ?? "", "are not fetched")
    assert.include(refusal({ $defs: { unused: { $ref: "other.json#/x" } } }) ?? "", "are not fetched")
  })

  it("C194: an address that is none is refused, not thrown", () => {
    for (const address of ["http://%", "http://[", "http://a:99999999/", "%E0%A4%A", "http://exa mple/"]) {
      const shown = JSON.stringify(address)
      assert.strictEqual(refusal({ $id: address }), `$id: ${shown} is no address`)
      assert.strictEqual(refusal({ $ref: address }), `$ref: ${shown} is no address`)
      assert.strictEqual(refusal({ $ref: "#/x/y", x: { y: { $id: address } } }), `#/x/y.$id: ${shown} is no address`)
    }
    for (const text of ["", "#", "##", "//", "..", "urn:x:y", "\ud800", "?", "a b"]) {
      for (const keyword of ["$id", "$ref", "$anchor", "$dynamicAnchor", "$dynamicRef"]) {
        assert.doesNotThrow(() => words({ [keyword]: text }, 1), undefined, `${keyword} ${text}`)
      }
    }
    // Whoever reads schemas off a wire has no types to lean on.
    for (const foreign of [null, [], "x", 5]) assert.strictEqual(refusal(foreign as never), "must be an object")
  })

  it("C194: references resolve by pointer, anchor, $id and to the dialect's own schema", () => {
    const text = { $defs: { "a/b~c": { type: "string" }, n: { $anchor: "num", type: "number" } } }
    assert.strictEqual(words({ ...text, $ref: "#/$defs/a~1b~0c" }, 1), "must be string")
    assert.strictEqual(words({ ...text, $ref: "#/%24defs/a~1b~0c" }, 1), "must be string")
    assert.strictEqual(words({ ...text, $ref: "#num" }, ""), "must be number")
    const inner = { $id: "https://example.com/root", $defs: { q: { $id: "inner", type: "string" } } }
    assert.strictEqual(words({ ...inner, $ref: "inner" }, 1), "must be string")
    assert.strictEqual(words({ ...inner, $ref: "https://example.com/inner" }, 1), "must be string")
    const draft07 = { $schema: "http://json-schema.org/draft-07/schema#" }
    const named = { ...draft07, definitions: { s: { $id: "#s", type: "string" } }, properties: { a: { $ref: "#s" } } }
    assert.strictEqual(words(named, { a: 1 }), "a: must be string")
    for (const dialect of [draft07, { $schema: "https://json-schema.org/draft/2020-12/schema" }]) {
      const schema = { ...dialect, properties: { s: { $ref: dialect.$schema } } }
      assert.isUndefined(words(schema, { s: { type: "string" } }))
      assert.match(words(schema, { s: { type: 5 } }) ?? "", /^s\.type: must /)
    }
  })

  it("C195: the words name the path, the keyword at fault and the property", () => {
    const item = { type: "object", properties: { "x/y": { type: "number" } }, required: ["n"] }
    const schema = {
      type: "object",
      properties: { b: { type: "string" }, list: { type: "array", items: item } },
      required: ["b"],
      additionalProperties: false
    }
    assert.isUndefined(words(schema, { b: "" }))
    assert.strictEqual(words(schema, {}), "must have required property 'b'")
    assert.strictEqual(words(schema, { b: 1 }), "b: must be string")
    assert.strictEqual(words(schema, { b: "", z: 1 }), 'must NOT have additional properties: "z"')
    assert.strictEqual(words(schema, { b: "", list: [{ n: 1 }, {}] }), "list[1]: must have required property 'n'")
    assert.strictEqual(words(schema, { b: "", list: [{ n: 1, "x/y": "" }] }), "list[0].x/y: must be number")
    assert.strictEqual(
      words({ unevaluatedProperties: false }, { b: 1 }),
      'must NOT have unevaluated (additional) properties: "b"'
    )
  })

  it("C195: the words say what was allowed", () => {
    assert.strictEqual(words({ enum: ["a", 1] }, 2), 'must be equal to one of the allowed values: "a", 1')
    assert.strictEqual(words({ const: null }, 2), "must be equal to null")
    assert.strictEqual(
      words({ properties: { p: { oneOf: [{ const: "low" }, { const: "high" }] } } }, { p: "Low" }),
      'p: must match exactly one schema in oneOf (must be equal to "low"; must be equal to "high")'
    )
    assert.strictEqual(words({ oneOf: [{}, {}] }, 1), "must match exactly one schema in oneOf")
    assert.strictEqual(
      words({ anyOf: [{ type: "string" }, { properties: { a: { type: "null" } } }] }, { a: 1 }),
      "must match a schema in anyOf (must be string; a: must be null)"
    )
    assert.strictEqual(
      words(JSON.parse('{"if":{"type":"string"},"then":{"minLength":5}}'), "a"),
      "must NOT have fewer than 5 characters"
    )
    assert.strictEqual(
      words({ propertyNames: { pattern: "^a" } }, { b: 1 }),
      'property name "b" must be valid (must match pattern "^a")'
    )
    assert.strictEqual(
      words({ uniqueItems: true }, [
        { a: 1, b: [] },
        { b: [], a: 1 }
      ]),
      "must NOT have duplicate items"
    )
  })

  it("C195: the words are one short line, whatever the names in the value are", () => {
    const long = "n".repeat(1_000_000)
    const hostile = [
      words({ additionalProperties: false }, { [long]: 1 }),
      words({ additionalProperties: { type: "string" } }, { [long]: 1 }),
      words({ propertyNames: { maxLength: 3 } }, { [long]: 1 }),
      words({ required: ["a\nb"] }, {}),
      words({ additionalProperties: false }, { "a\r\n\u2028b": 1 }),
      words({ enum: Array.from({ length: 3000 }, (_, i) => `${long.slice(0, 30)}${i}`) }, 1),
      words({ required: [long.slice(0, 9000)] }, {}),
      refusal({ $ref: `#/${long}` }),
      refusal({ pattern: `${long.slice(0, 9000)}(` })
    ]
    for (const text of hostile) {
      assert.isString(text)
      assert.isAtMost(text?.length ?? 0, 600)
      assert.notMatch(text ?? "", /[\n\r\u2028\u2029]/)
    }
  })

  it("formats are checked, in both dialects; unknown ones are not", () => {
    for (const $schema of ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]) {
      const of = (format: string, value: string) => words({ $schema, format }, value)
      assert.strictEqual(of("email", "x"), 'must match format "email"')
      assert.isUndefined(of("email", "a@b.example"))
      assert.strictEqual(of("date", "2026-02-30"), 'must match format "date"')
      assert.isUndefined(of("date-time", "2026-02-28T10:00:00Z"))
      assert.strictEqual(of("uri", "no uri"), 'must match format "uri"')
      assert.isUndefined(of("flavour", "anything"))
    }
  })

  it("what is no keyword of JSON Schema means nothing", () => {
    assert.strictEqual(words({ $async: true, type: "object" }, 1), "must be object") // no promise
    assert.strictEqual(words({ type: "string", nullable: true }, null), "must be string")
    assert.isUndefined(words({ nullable: true, id: "x", discriminator: { propertyName: "a" } }, null))
    assert.isUndefined(words({ properties: { $async: { type: "string" }, nullable: {}, $ref: {} } }, { $async: "" }))
    assert.strictEqual(words({ properties: { $ref: { type: "string" } } }, { $ref: 1 }), "$ref: must be string")
    // In draft-07, but not in 2020-12, what stands beside a $ref is ignored.
    const beside = {
      properties: { a: { $ref: "#/definitions/s", maxLength: 1 } },
      definitions: { s: { type: "string" } }
    }
    assert.isUndefined(words({ $schema: "http://json-schema.org/draft-07/schema#", ...beside }, { a: "long" }))
    assert.strictEqual(words(beside, { a: "long" }), "a: must NOT have more than 1 characters")
  })

  it("a number too large for a double is no number", () => {
    assert.strictEqual(words({ type: "number" }, JSON.parse("1e400")), "must be number")
    assert.strictEqual(words({ type: "integer" }, JSON.parse("-1e400")), "must be integer")
    assert.isUndefined(words({ type: "integer" }, JSON.parse("2.0e0")))
  })

  it("only a value's own members count", () => {
    assert.strictEqual(words({ required: ["toString"] }, {}), "must have required property 'toString'")
    assert.isUndefined(words({ properties: { constructor: { type: "string" } } }, {}))
    assert.strictEqual(refusal({ $ref: "#/__proto__" }), '$ref: "#/__proto__" leads to nothing')
  })

  it("C192: a schema is left as it was written", () => {
    const schema = { $async: true, type: "object", properties: { a: { type: "string", nullable: true } } }
    const before = JSON.stringify(schema)
    assert.strictEqual(words(schema, { a: null }), "a: must be string")
    assert.strictEqual(JSON.stringify(schema), before)
  })

  it("C192: schemas do not know of each other, and later changes to one are not seen", () => {
    const schema = (type: string) => ({ $id: "https://example.com/same", type, $defs: { q: { $id: "inner", type } } })
    const first = Result.getOrThrow(JsonSchemaCheck.compile(schema("string")))
    assert.strictEqual(words(schema("number"), ""), "must be number")
    assert.isTrue(first._tag === "Checked" && first.check(1) === "must be string")
    const changing: { type: string } = { type: "string" }
    const compiled = Result.getOrThrow(JsonSchemaCheck.compile(changing))
    changing.type = "number"
    assert.isTrue(compiled._tag === "Checked" && compiled.check("") === undefined)
  })

  it("P76: a schema that refers to itself without end is refused when it is registered", () => {
    assert.strictEqual(refusal({ $ref: "#" }), "refers to itself without end")
    assert.strictEqual(refusal({ allOf: [{ $ref: "#" }] }), "refers to itself without end")
    assert.strictEqual(refusal({ not: { anyOf: [{}, { $ref: "#" }] } }), "refers to itself without end")
    assert.strictEqual(refusal({ $dynamicAnchor: "n", allOf: [{ $dynamicRef: "#n" }] }), "refers to itself without end")
    const mutual = { $defs: { a: { $ref: "#/$defs/b" }, b: { oneOf: [{ $ref: "#/$defs/a" }] } } }
    assert.strictEqual(refusal(mutual), "$defs.a: refers to itself without end")
    const conditional = { properties: { a: { dependentSchemas: { x: { $ref: "#/properties/a" } } } } }
    assert.strictEqual(refusal(conditional), "properties.a: refers to itself without end")
    const chain = Object.fromEntries(
      Array.from({ length: 4000 }, (_, i) => [`a${i}`, { $ref: `#/$defs/a${(i + 1) % 4000}` }])
    )
    assert.match(refusal({ $defs: chain }) ?? "", /refers to itself without end$/)
  })

  it("P76: a schema of a recursive shape is fine, for values of any depth", () => {
    const tree = { type: "object", properties: { c: { $ref: "#" }, items: { type: "array", items: { $ref: "#" } } } }
    assert.isUndefined(words(tree, { c: { items: [{}, { c: {} }] } }))
    assert.strictEqual(words(tree, { c: { items: [{}, { c: 1 }] } }), "c.items[1].c: must be object")
    assert.strictEqual(words(tree, nested(100_000)), "the value is nested too deeply")
    assert.strictEqual(words({ uniqueItems: true }, [nested(100_000), 1]), "the value is nested too deeply")
    assert.isUndefined(words({ type: "object" }, nested(100_000)))
    assert.strictEqual(words({ const: nested(3) as Json }, nested(100_000)), 'must be equal to {"c":{"c":{"c":1}}}')
    const dynamic = { $dynamicAnchor: "n", type: "object", properties: { c: { $dynamicRef: "#n" } } }
    assert.strictEqual(words(dynamic, nested(100_000)), "the value is nested too deeply")
  })

  it("P76: the size of a schema is bounded", { timeout: 60_000 }, () => {
    within(2000, () => {
      assert.strictEqual(refusal(nested(100_000, "not") as Json), "nested more than 256 levels deep")
      const wide = (count: number, member: (i: number) => Json) =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, member(i)]))
      assert.strictEqual(refusal({ properties: wide(100_000, () => ({})) }), "has more than 100000 values")
      assert.strictEqual(refusal({ properties: wide(6000, () => ({})) }), "has more than 5000 subschemas")
      assert.strictEqual(
        refusal({ $schema: "http://example.com/x", not: nested(300) as Json }),
        "nested more than 256 levels deep"
      )
      const cyclic: { [key: string]: Schema.Json } = {}
      cyclic.properties = { a: cyclic }
      assert.strictEqual(refusal(cyclic), "nested more than 256 levels deep")
    })
  })

  it("P76: no honest schema meets the bounds", { timeout: 60_000 }, () => {
    const deep = Array.from({ length: 100 }).reduce(
      (inner: Json) => ({ type: "object", properties: { a: inner }, required: ["a"] }),
      { type: "string" }
    )
    assert.match(words(deep, {}) ?? "", /required property 'a'/)
    const wide = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`p${i}`, { type: "object", properties: { a: { type: "string" } } }])
    )
    assert.strictEqual(words({ properties: wide }, { p499: { a: 1 } }), "p499.a: must be string")
    const timezones = Array.from({ length: 20_000 }, (_, i) => `Zone/${i}`)
    assert.isUndefined(words({ enum: timezones }, "Zone/19999"))
  })

  it("P76: a small schema cannot make a check run for ever", { timeout: 60_000 }, () => {
    const twice = (target: string) => ({ allOf: [{ $ref: target }, { $ref: target }] })
    const doubling = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`a${i}`, i === 59 ? { type: "string" } : twice(`#/$defs/a${i + 1}`)])
    )
    const tooLong = "the value takes too long to check against this schema"
    assert.strictEqual(
      within(5000, () => words({ $ref: "#/$defs/a0", $defs: doubling }, "x")),
      tooLong
    )
    const branching = { allOf: [1, 2].map(() => ({ properties: { c: { $ref: "#" } } })) }
    assert.strictEqual(
      within(5000, () => words(branching, nested(60))),
      tooLong
    )
    // The steps of one check do not count for the next.
    const compiled = Result.getOrThrow(JsonSchemaCheck.compile(branching))
    const check = compiled._tag === "Checked" ? compiled.check : () => "unchecked"
    assert.deepStrictEqual([nested(60), nested(3), nested(60), nested(3)].map(check), [
      tooLong,
      undefined,
      tooLong,
      undefined
    ])
  })

  it("P76: a pattern cannot make a check run for ever", { timeout: 60_000 }, () => {
    const value = `${"a".repeat(10_000)}!`
    for (const pattern of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(?=(a+)+$)"]) {
      assert.include(within(5000, () => words({ pattern }, value)) ?? "fits", "must match pattern", pattern)
      assert.include(
        within(5000, () =>
          words({ additionalProperties: false, patternProperties: { [pattern]: {} } }, { [value]: 1 })
        ) ?? "fits",
        "additional",
        pattern
      )
    }
    const many = Array.from({ length: 20_000 }, () => "a".repeat(500))
    assert.strictEqual(
      within(10_000, () => words({ items: { pattern: "^(?:(?:a?){30}){30}b?$" } }, many)),
      "the value takes too long to check against this schema"
    )
    assert.include(refusal({ properties: { a: { pattern: "(a)\\1" } } }) ?? "", "backreference")
  })

  it("P76: a long list of small objects is checked for duplicates in one pass", { timeout: 60_000 }, () => {
    const items = Array.from({ length: 100_000 }, (_, i) => ({ i }))
    assert.isUndefined(within(5000, () => words({ type: "array", uniqueItems: true }, items)))
    assert.strictEqual(words({ uniqueItems: true }, [...items, { i: 5 }]), "must NOT have duplicate items")
    assert.isUndefined(words({ uniqueItems: true }, [1, "1", true, "true", null, "null", [1], ["1"], {}, []]))
    assert.isUndefined(words({ uniqueItems: false }, [1, 1]))
  })

  it("P76: no format can make a check run for ever", { timeout: 60_000 }, () => {
    const formats = [
      "email",
      "uri",
      "uri-reference",
      "uri-template",
      "url",
      "hostname",
      "ipv6",
      "date-time",
      "duration",
      "json-pointer",
      "regex",
      "byte"
    ]
    const repeated = ["a", "a-", "a.", "1", "%aa", "/", ":", "{a}", "a@", "http://a", "AAA=", "é-", "("]
    const starts = ["", "http://", "a@", "ftp://", "2026-01-01T00:00:00.", "#"]
    within(20_000, () => {
      for (const format of formats) {
        const compiled = Result.getOrThrow(JsonSchemaCheck.compile({ format }))
        if (compiled._tag !== "Checked") return assert.fail("unchecked")
        for (const start of starts) {
          for (const part of repeated) compiled.check(`${start}${part.repeat(20_000)}\u0000`)
        }
      }
    })
  })

  const Leaf = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])
  it.prop(
    "C195: a check neither throws nor changes the value, whatever the value is",
    {
      value: Arbitrary.schema(
        Schema.Record(Schema.String, Schema.Union([Leaf, Schema.Array(Leaf), Schema.Record(Schema.String, Leaf)]))
      )
    },
    ({ value }) => {
      const before = JSON.stringify(value)
      const text = words(
        {
          type: "object",
          properties: { a: { type: "string", default: "x" }, b: { type: "array", uniqueItems: true } },
          patternProperties: { "^[a-m]": { anyOf: [{ type: "string" }, { minimum: 0 }] } },
          additionalProperties: { type: ["string", "boolean", "array"] }
        },
        value
      )
      assert.strictEqual(JSON.stringify(value), before)
      assert.isTrue(text === undefined || (text.length > 0 && !text.startsWith("refused")))
    }
  )
})
