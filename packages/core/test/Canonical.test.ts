import { assert, describe, it } from "@effect/vitest"
import * as Canonical from "@agenttool/core/Canonical"
import * as Shape from "@agenttool/core/Shape"
import * as Tool from "@agenttool/core/Tool"
import { Arbitrary, Effect, Result, Schema } from "effect"
import { names, rows, type Subject } from "./properties.ts"

const text = (value: unknown): string => Result.getOrThrow(Canonical.stringify(value))
const message = (value: unknown): string => Result.getOrThrow(Result.flip(Canonical.stringify(value))).message
const hash = (self: Canonical.DefinitionShaped): string => Result.getOrThrow(Canonical.definitionHash(self))
const schemaOf = (fields: ReadonlyArray<Shape.Field>, strict = false): Schema.JsonObject =>
  Result.getOrThrow(Shape.toJsonSchema({ type: "object", fields }, { strict }))

const readFile: ReadonlyArray<Shape.Field> = [
  { name: "path", type: "string", description: "Absolute path to read" },
  { name: "max_bytes", type: "integer", optional: true, description: "Stop after this many bytes" }
]

describe("canonical JSON", () => {
  // The samples of appendix B of RFC 8785.
  const numbers: ReadonlyArray<readonly [bits: bigint, expected: string]> = [
    [0x0000000000000000n, "0"],
    [0x8000000000000000n, "0"],
    [0x0000000000000001n, "5e-324"],
    [0x8000000000000001n, "-5e-324"],
    [0x7fefffffffffffffn, "1.7976931348623157e+308"],
    [0xffefffffffffffffn, "-1.7976931348623157e+308"],
    [0x4340000000000000n, "9007199254740992"],
    [0xc340000000000000n, "-9007199254740992"],
    [0x4430000000000000n, "295147905179352830000"],
    [0x44b52d02c7e14af5n, "9.999999999999997e+22"],
    [0x44b52d02c7e14af6n, "1e+23"],
    [0x44b52d02c7e14af7n, "1.0000000000000001e+23"],
    [0x444b1ae4d6e2ef4en, "999999999999999700000"],
    [0x444b1ae4d6e2ef4fn, "999999999999999900000"],
    [0x444b1ae4d6e2ef50n, "1e+21"],
    [0x3eb0c6f7a0b5ed8cn, "9.999999999999997e-7"],
    [0x3eb0c6f7a0b5ed8dn, "0.000001"],
    [0x41b3de4355555553n, "333333333.3333332"],
    [0x41b3de4355555554n, "333333333.33333325"],
    [0x41b3de4355555555n, "333333333.3333333"],
    [0x41b3de4355555556n, "333333333.3333334"],
    [0x41b3de4355555557n, "333333333.33333343"],
    [0xbecbf647612f3696n, "-0.0000033333333333333333"],
    [0x43143ff3c1cb0959n, "1424953923781206.2"]
  ]
  const ofBits = (bits: bigint): number => {
    const view = new DataView(new ArrayBuffer(8))
    view.setBigUint64(0, bits)
    return view.getFloat64(0)
  }

  it("C22: numbers have the form that ECMAScript gives them", () => {
    for (const [bits, expected] of numbers) assert.strictEqual(text(ofBits(bits)), expected)
  })

  it("C22: a number that is not finite has no canonical form", () => {
    assert.strictEqual(message(ofBits(0x7fffffffffffffffn)), "no canonical form: NaN is not finite")
    assert.strictEqual(
      message({ a: [0, ofBits(0x7ff0000000000000n)] }),
      "no canonical form: a[1]: Infinity is not finite"
    )
    assert.strictEqual(message(JSON.parse("-1e400")), "no canonical form: -Infinity is not finite")
  })

  it("C22: a text or a name with an unpaired surrogate has no canonical form", () => {
    assert.strictEqual(message({ a: { b: "x\ud800y" } }), "no canonical form: a.b: the text has an unpaired surrogate")
    assert.include(message("\ude00\ud83d"), "unpaired surrogate")
    assert.include(message({ "\udc00": 1 }), "the name has an unpaired surrogate")
    assert.strictEqual(text("\ud83d\ude00"), '"\ud83d\ude00"')
  })

  it("C22: members stand in the order of their UTF-16 units, not of their code points", () => {
    const sorted = text({
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    })
    assert.strictEqual(
      sorted,
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
        '"\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
    )
  })

  // The test files that go with the RFC; `values` is also the sample of its section 3.2.2.
  const files: ReadonlyArray<readonly [name: string, input: string, expected: string]> = [
    ["arrays", '[56,{"d":true,"10":null,"1":[]}]', '[56,{"1":[],"10":null,"d":true}]'],
    [
      "french",
      '{"peach":"This sorting order","p\u00e9ch\u00e9":"is wrong according to French","p\u00eache":"but canonicalization MUST","sin":"ignore locale"}',
      '{"peach":"This sorting order","p\u00e9ch\u00e9":"is wrong according to French","p\u00eache":"but canonicalization MUST","sin":"ignore locale"}'
    ],
    [
      "structures",
      String.raw`{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}`,
      String.raw`{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}`
    ],
    ["unicode", '{"Unnormalized Unicode":"A\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'],
    [
      "values",
      String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
    ],
    [
      "weird",
      String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\u000a":"Newline","1":"One","\u0080":"Control\u007f","\ud83d\ude02":"Smiley","\u00f6":"Latin Small Letter O With Diaeresis","\ufb33":"Hebrew Letter Dalet With Dagesh","</script>":"Browser Challenge"}`,
      '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge","\u0080":"Control\u007f","\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign","\ud83d\ude02":"Smiley","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
    ]
  ]
  it.each(files)("C22: the vector %s", (_name, input, expected) => {
    assert.strictEqual(text(JSON.parse(input)), expected)
  })

  it("C22: control characters have the short escape or lower-case hex, everything else stands as it is", () => {
    assert.strictEqual(
      text('\b\t\n\f\r"\\\u0000\u001f\u007f/\u2028'),
      `${String.raw`"\b\t\n\f\r\"\\\u0000\u001f`}\u007f/\u2028"`
    )
  })

  it("C22: only plain data has a canonical form, and an undefined member is no member", () => {
    assert.strictEqual(text({ b: undefined, a: 1 }), '{"a":1}')
    assert.strictEqual(text(Object.create(null, { a: { value: 1, enumerable: true } })), '{"a":1}')
    assert.strictEqual(message([undefined]), "no canonical form: [0]: undefined has no JSON")
    assert.strictEqual(message(undefined), "no canonical form: undefined has no JSON")
    assert.include(message({ a: 1n }), "a: bigint has no JSON")
    assert.include(message({ a: () => 1 }), "a: function has no JSON")
    assert.include(message({ at: new Date(0) }), "at: an instance of a class is not plain data")
    assert.include(message(new Map()), "an instance of a class")
  })

  it("C22: members named __proto__ and constructor are members", () => {
    assert.strictEqual(
      text(JSON.parse('{"constructor":1,"__proto__":{"b":1}}')),
      '{"__proto__":{"b":1},"constructor":1}'
    )
  })

  it("C22: a cycle is an error, one value at two places is not, and no depth overflows", () => {
    const cycle: { a: Array<unknown> } = { a: [] }
    cycle.a.push(cycle)
    assert.strictEqual(message(cycle), "no canonical form: a[0]: it contains itself")
    const shared = { b: 1 }
    assert.strictEqual(text({ x: shared, y: [shared, shared] }), '{"x":{"b":1},"y":[{"b":1},{"b":1}]}')
    const deep = "[".repeat(200_000) + "]".repeat(200_000)
    assert.strictEqual(text(JSON.parse(deep)), deep)
  })

  const json: Arbitrary.Arbitrary<Schema.Json> = Arbitrary.schema(Schema.Json)
  // `JSON.stringify` writes an unpaired surrogate, and nothing else, as such an escape.
  const hasUnpaired = (value: Schema.Json) => /\\ud[89a-f]/.test(JSON.stringify(value))

  it.prop("C22: canonical text reads as the same value, and is canonical", { value: json }, ({ value }) => {
    const made = Canonical.stringify(value)
    if (Result.isFailure(made)) return assert.isTrue(hasUnpaired(value), made.failure.message)
    assert.deepStrictEqual(JSON.parse(made.success), JSON.parse(JSON.stringify(value)))
    assert.strictEqual(text(JSON.parse(made.success)), made.success)
  })

  const reversed = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(reversed)
      : typeof value === "object" && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([key, member]) => [key, reversed(member)])
          )
        : value

  it.prop("C25: the order of members does not change the canonical text", { value: json }, ({ value }) => {
    const other = Canonical.stringify(reversed(value))
    assert.strictEqual(Result.isFailure(other), Result.isFailure(Canonical.stringify(value)))
    if (Result.isSuccess(other)) assert.strictEqual(other.success, text(value))
  })
})

describe("the definition and its hash", () => {
  it("C7 C9 C20: the members of a definition are a closed list, in this order", () => {
    const tool = { name: "t", description: "d", parameters: { type: "object" }, strict: true, sequential: true, x: 1 }
    assert.strictEqual(
      JSON.stringify(Canonical.definition(tool)),
      '{"type":"function","name":"t","description":"d","parameters":{"type":"object"},"strict":true}'
    )
  })

  it("C3 C4 C5 C8 C21: what is missing becomes what it means, and what is not true is dropped", () => {
    const expected =
      '{"type":"function","name":"ping","description":"","parameters":{"type":"object","properties":{},"required":[]}}'
    for (const self of [
      { name: "ping" },
      { name: "ping", description: null, parameters: null, strict: null },
      { name: "ping", description: "", parameters: undefined, strict: false },
      { type: "function", name: "ping", extra: [1] }
    ]) {
      assert.strictEqual(JSON.stringify(Canonical.definition(self)), expected)
    }
  })

  it("C22: the bytes that are hashed", () => {
    assert.strictEqual(
      text(Canonical.definition({ name: "ping" })),
      '{"description":"","name":"ping","parameters":{"properties":{},"required":[],"type":"object"},"type":"function"}'
    )
  })

  it("C23: the worked hashes", () => {
    assert.strictEqual(
      hash({ name: "ping" }),
      "sha256:2bfb9c64aeae706078213ec038cc273f96455eda1070928bce7496c1c9a69cd3"
    )
    assert.strictEqual(
      hash({ name: "ping", description: "Answer pong" }),
      "sha256:96c2c94e1001db3f45fde4fb55090abb17fe0adab11dc1c9cc5133c4a6681548"
    )
    const description = "Read a file from disk"
    assert.strictEqual(
      hash({ name: "read_file", description, parameters: schemaOf(readFile) }),
      "sha256:e963a4923d8b7fc642c9fba06e5e745489dd85efd2254d827713a14c674912e1"
    )
    assert.strictEqual(
      hash({ name: "read_file", description, parameters: schemaOf(readFile, true), strict: true }),
      "sha256:c9cbb389dc135b4b2fa346dae2ff39c26839271ebe578cc94e43cc470f081d0d"
    )
  })

  it("C176: the hash of the strict_nullable schema", () => {
    const parameters = schemaOf(
      [
        { name: "level", type: "string", enum: ["low", "high"], optional: true, nullable: true },
        { name: "raw", type: "any", optional: true, nullable: true },
        { name: "when", type: "string", format: "date-time", optional: true, nullable: true },
        {
          name: "items",
          type: "array",
          items: {
            type: "object",
            fields: [
              { name: "name", type: "string" },
              { name: "Tags", type: "array", items: { type: "string" } }
            ]
          }
        }
      ],
      true
    )
    assert.strictEqual(
      hash({ name: "t", parameters, strict: true }),
      "sha256:35b90a29614c5e5514df5ca027efa03a8533354e0fca3e441b96eca0cb5a161a"
    )
  })

  it("C24: any other definition is another tool", () => {
    const hashes = [
      { name: "a" },
      { name: "b" },
      { name: "a", description: "x" },
      { name: "a", description: "y" },
      { name: "a", parameters: { type: "object" } },
      { name: "a", strict: true }
    ].map(hash)
    assert.strictEqual(new Set(hashes).size, hashes.length)
  })

  it("C25: the order of members is not seen; that inside required, enum and a type union is", () => {
    const of = (parameters: Schema.JsonObject) => hash({ name: "t", parameters })
    assert.strictEqual(
      of({ type: "object", properties: { a: { type: "string", description: "x" } }, required: ["a"] }),
      of({ required: ["a"], properties: { a: { description: "x", type: "string" } }, type: "object" })
    )
    assert.notStrictEqual(of({ required: ["a", "b"] }), of({ required: ["b", "a"] }))
    assert.notStrictEqual(of({ enum: [1, 2] }), of({ enum: [2, 1] }))
    assert.notStrictEqual(of({ type: ["string", "null"] }), of({ type: ["null", "string"] }))
  })

  it("C26: a supplied schema is hashed as it is written", () => {
    const parameters = { $schema: "x", required: ["b", "a"], title: "T", properties: { x: { type: "string" } } }
    assert.deepStrictEqual(Canonical.definition({ name: "t", parameters }).parameters, parameters)
    const { $schema: _, ...rest } = parameters
    assert.notStrictEqual(hash({ name: "t", parameters }), hash({ name: "t", parameters: rest }))
  })

  it("C11, C27: a tool has the hash of its definition, whatever other properties it has", () => {
    const parameters = Schema.Struct({ path: Schema.String, max_bytes: Schema.optionalKey(Schema.Int) })
    const tools: ReadonlyArray<Subject> = [
      Tool.make("t", { description: "d", parameters, execute: () => Effect.void }),
      Tool.make("t", { execute: () => Effect.void }),
      Tool.raw("t", { parameters: { type: "object", title: "T" }, execute: () => Effect.void })
    ]
    for (const plain of tools) {
      for (const tool of [plain, Tool.strict(plain), Tool.strict(Tool.wrap(plain, (execute) => execute))]) {
        assert.deepStrictEqual(Canonical.definition(tool), Tool.definition(tool))
        assert.strictEqual(hash(tool), hash(Tool.definition(tool)))
        for (const name of names.filter((name) => name !== "strict")) {
          assert.strictEqual(hash(rows[name].set(tool)), hash(tool), name)
        }
      }
      assert.notStrictEqual(hash(Tool.strict(plain)), hash(plain))
    }
  })

  it("C27: a definition that has no canonical form has no hash, and says where", () => {
    const made = Canonical.definitionHash({ name: "t", parameters: { default: Number.NaN } })
    assert.strictEqual(Result.isFailure(made) ? made.failure.path : "", "parameters.default")
  })
})
