import type * as Properties from "@agenttool/core/Properties"
import * as Tool from "@agenttool/core/Tool"
import * as Definition from "@agenttool/server/Definition"
import * as Wire from "@agenttool/server/Wire"
import { assert, describe, it } from "@effect/vitest"
import { isSpecType } from "@modelcontextprotocol/server"
import { Effect, Schema } from "effect"

const execute = () => Effect.succeed("")
const plain = Tool.raw("plain", { description: "Does nothing", execute })
const withSchema = (parameters: Schema.JsonObject) => Tool.raw("plain", { parameters, execute })

/** The tool's entry under `_meta`, without the claim that every tool answers. */
const entryOf = (tool: Tool.Any) => {
  const { replay, ...entry } = Definition.make(tool)._meta[Wire.toolKey]
  assert.isTrue(replay)
  return entry
}

// A compile-time law: a definition is JSON, as far as the compiler can tell.
const asJson = (definition: Definition.ToolDefinition): Schema.Json => definition

describe("Wire", () => {
  it("M17, M36: names and fixed values are those of the contract, byte for byte", () => {
    assert.strictEqual(Wire.factsMethod, "execution/facts")
    assert.strictEqual(Wire.factsCapability, "io.github.christopherdavenport.agenttool/facts")
    assert.strictEqual(Wire.recordKey, "io.github.christopherdavenport.agenttool/record")
    assert.strictEqual(Wire.toolKey, "io.github.christopherdavenport.agenttool/tool")
    assert.strictEqual(Wire.unknownBytes, "application/octet-stream")
    assert.strictEqual(JSON.stringify(Wire.emptyForm), '{"type":"object","properties":{}}')
  })
})

describe("Definition", () => {
  it("M12: the schema is the very object that its author gave", () => {
    const schema: Schema.JsonObject = {
      required: ["b"],
      type: "object",
      $schema: "http://json-schema.org/draft-07/schema#",
      properties: { b: { type: "string" }, a: { default: null } },
      "x-own": { deep: [1] }
    }
    const written = JSON.stringify(schema)
    const definition = Definition.make(withSchema(schema))
    assert.strictEqual(definition.inputSchema, schema)
    assert.strictEqual(JSON.stringify(definition.inputSchema), written)
    assert.strictEqual(definition.name, "plain")
  })

  it("M12: a generated schema has no $schema, a tool without parameters has the empty object schema", () => {
    const typed = Tool.make("typed", { parameters: Schema.Struct({ a: Schema.String }), execute })
    assert.strictEqual(
      JSON.stringify(Definition.make(typed).inputSchema),
      '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}'
    )
    for (const tool of [plain, Tool.make("none", { execute })]) {
      assert.strictEqual(
        JSON.stringify(Definition.make(tool).inputSchema),
        '{"type":"object","properties":{},"required":[]}'
      )
    }
  })

  it("M12: a name that some model APIs refuse is served as it is, and warned of with the tool and the rule", () => {
    for (const name of ["my tool", "a.b", "a".repeat(65), "é", "a\n", ""]) {
      const warning = Definition.nameWarning(name)
      assert.include(warning, `tool ${JSON.stringify(name)}`)
      assert.include(warning, "^[A-Za-z0-9_-]{1,64}$")
    }
    for (const name of ["ok_name-1", "a", "a".repeat(64)]) assert.isUndefined(Definition.nameWarning(name))
    assert.strictEqual(Definition.make(Tool.raw("my tool", { execute })).name, "my tool")
  })

  it("M13: the description as it is, none when empty; strict does not cross; an output schema only with success", () => {
    const parameters = Schema.Struct({ a: Schema.optionalKey(Schema.NullOr(Schema.String)) })
    const strict = Tool.make("typed", { description: " As it is.\n", parameters, execute }).pipe(Tool.strict)
    assert.deepStrictEqual(Object.keys(Definition.make(strict)), ["name", "description", "inputSchema", "_meta"])
    assert.strictEqual(Definition.make(strict).description, " As it is.\n")
    assert.deepStrictEqual(Object.keys(Definition.make(Tool.raw("bare", { execute }))), [
      "name",
      "inputSchema",
      "_meta"
    ])
    const count = Tool.make("count", { success: Schema.Finite, execute: () => Effect.succeed(1) })
    assert.deepStrictEqual(Definition.make(count).outputSchema, { type: "number" })
    assert.strictEqual(Definition.make(count).outputSchema, count.success)
  })

  const full = (
    readOnlyHint: boolean,
    destructiveHint: boolean,
    idempotentHint: boolean,
    openWorldHint: boolean,
    title?: string
  ) => ({ readOnlyHint, destructiveHint, idempotentHint, openWorldHint, ...(title === undefined ? {} : { title }) })

  const rows: ReadonlyArray<
    readonly [Properties.Annotations, Properties.Flow, string | undefined, ReturnType<typeof full> | undefined]
  > = [
    [{}, {}, undefined, undefined],
    [{}, { untrusted: true }, undefined, undefined],
    [{}, { sends: true }, undefined, undefined],
    [{}, { untrusted: true, sends: true }, undefined, undefined],
    [{ readOnly: true }, {}, undefined, full(true, false, false, false)],
    [{ title: "Search issues", readOnly: true }, {}, "Search issues", full(true, false, false, false, "Search issues")],
    [{ destructive: true, openWorld: true }, {}, undefined, full(false, true, false, true)],
    [{ idempotent: true }, {}, undefined, full(false, false, true, false)],
    [{ readOnly: true }, { untrusted: true }, undefined, full(true, false, false, true)],
    [{ idempotent: true }, { sends: true }, undefined, full(false, false, true, true)],
    [{ title: "Search issues" }, {}, "Search issues", full(false, false, false, false, "Search issues")],
    // What the rules say beside the table.
    [{ openWorld: false, readOnly: true }, { sends: true }, undefined, full(true, false, false, true)],
    [{ readOnly: true }, { sends: false, untrusted: false }, undefined, full(true, false, false, false)],
    [{ title: "" }, {}, undefined, undefined],
    [{ title: "" }, { sends: true }, undefined, undefined],
    [{ readOnly: false, destructive: false, idempotent: false, openWorld: false }, {}, undefined, undefined],
    [{ destructive: false }, { untrusted: true }, undefined, undefined]
  ]
  it.each(rows)("C42, M14-M16: annotations %j with flow %j", (annotations, flow, title, served) => {
    const definition = Definition.make(plain.pipe(Tool.annotate(annotations), Tool.flow(flow)))
    assert.strictEqual(definition.title, title)
    // Also the order of the members, and that what is absent is no member at all.
    assert.strictEqual(JSON.stringify(definition.annotations), JSON.stringify(served))
    assert.strictEqual("annotations" in definition, served !== undefined)
    assert.strictEqual("title" in definition, title !== undefined)
  })

  it("M17: each field is listed when it says something, and left out otherwise", () => {
    assert.deepStrictEqual(entryOf(plain), {})
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.facts(() => Effect.succeed({})))), { facts: true })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.replay("safe"))), {})
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.annotate({ readOnly: true }))), { readOnly: true })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.annotate({ idempotent: true, readOnly: false }))), {})
    assert.deepStrictEqual(entryOf(Tool.sequential(plain)), { sequential: true })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.resource("shell:session"))), { resource: "shell:session" })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.resource(""))), {})
  })

  it("C39, M17: a barrier is sequential as well, a tool that is sequential in its own right is no barrier", () => {
    assert.deepStrictEqual(entryOf(Tool.barrier(plain)), { sequential: true, barrier: true })
    for (const both of [plain.pipe(Tool.barrier, Tool.sequential), plain.pipe(Tool.sequential, Tool.barrier)]) {
      assert.deepStrictEqual(entryOf(both), { sequential: true })
    }
  })

  it("M17: a barrier's resource is listed, a sequential tool's is not", () => {
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.resource("db"), Tool.barrier)), {
      sequential: true,
      barrier: true,
      resource: "db"
    })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.resource("db"), Tool.sequential)), { sequential: true })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.resource("db"), Tool.sequential, Tool.barrier)), {
      sequential: true
    })
  })

  it("C42, M18: a flow is listed without its false members, and not at all when nothing is stated", () => {
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.flow({ untrusted: true }))), { flow: { untrusted: true } })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.flow({ untrusted: false, sends: true }))), {
      flow: { sends: true }
    })
    assert.deepStrictEqual(entryOf(plain.pipe(Tool.flow({ sends: false }))), {})
  })

  it("M17, M18: all fields at once, in the contract's order", () => {
    const all = plain.pipe(
      Tool.flow({ sends: true, untrusted: true }),
      Tool.resource("shell:session"),
      Tool.barrier,
      Tool.annotate({ readOnly: true }),
      Tool.facts(() => Effect.succeed({}))
    )
    assert.strictEqual(
      JSON.stringify(Definition.make(all)._meta),
      '{"io.github.christopherdavenport.agenttool/tool":{"facts":true,"replay":true,"readOnly":true,"sequential":true,' +
        '"barrier":true,"resource":"shell:session","flow":{"untrusted":true,"sends":true}}}'
    )
  })

  it("M20: a definition made on its own carries its entry, as in the contract's example", () => {
    const bash = Tool.raw("bash", {
      description: "Run a command",
      parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
      execute
    }).pipe(
      Tool.facts(() => Effect.succeed({})),
      Tool.resource("shell:session")
    )
    assert.strictEqual(
      JSON.stringify(Definition.make(bash)),
      '{"name":"bash","description":"Run a command","inputSchema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]},' +
        '"_meta":{"io.github.christopherdavenport.agenttool/tool":{"facts":true,"replay":true,"resource":"shell:session"}}}'
    )
  })

  it("M20: a wrapper's definition is that of the wrapped tool", () => {
    const tool = plain.pipe(Tool.annotate({ title: "T", destructive: true }), Tool.barrier, Tool.flow({ sends: true }))
    const wrapped = tool.pipe(Tool.wrap((run) => (call) => Effect.delay(run(call), "1 second")))
    assert.deepStrictEqual(Definition.make(wrapped), Definition.make(tool))
  })

  it("icons are what the setting says, and are not listed without it", () => {
    const icons = [
      { src: "https://example.com/i.png", mimeType: "image/png", sizes: ["48x48"], theme: "dark" }
    ] as const
    assert.deepStrictEqual(Definition.make(plain.pipe(Tool.setting(Definition.Icons, icons))).icons, icons)
    assert.isFalse("icons" in Definition.make(plain))
  })

  it("a definition is JSON, and a tool as the SDK knows it", () => {
    const tool = Tool.make("count", {
      success: Schema.Struct({ n: Schema.Finite }),
      execute: () => Effect.succeed({ n: 1 })
    }).pipe(
      Tool.annotate({ title: "Count", readOnly: true }),
      Tool.setting(Definition.Icons, [{ src: "data:image/png;base64,AQID" }])
    )
    const definition = Definition.make(tool)
    assert.deepStrictEqual(JSON.parse(JSON.stringify(asJson(definition))), definition)
    assert.isTrue(isSpecType.Tool(definition))
  })

  it("P131: clients before 2026-07-28 see an output schema that is no object as the member of one", () => {
    const legacy = (success: Schema.ConstraintCodec<unknown, unknown>) => {
      const tool = Tool.make("t", { success, execute: () => Effect.succeed<unknown>(undefined) })
      const made = Definition.make(tool)
      return { made, served: Definition.forLegacy(made) }
    }
    for (const success of [Schema.Array(Schema.String), Schema.String, Schema.Finite]) {
      const { made, served } = legacy(success)
      assert.deepStrictEqual(served, {
        ...made,
        outputSchema: { type: "object", properties: { result: made.outputSchema ?? {} }, required: ["result"] }
      })
      assert.isTrue(isSpecType.Tool(served))
      assert.strictEqual(Definition.forLegacy(served), served, "wrapped once")
    }
    const { made, served } = legacy(Schema.Struct({ a: Schema.String }))
    assert.strictEqual(served, made)
    const without = Definition.make(plain)
    assert.strictEqual(Definition.forLegacy(without), without)
  })
})

describe("Definition.schemaFault", () => {
  const faultOf = (parameters: Schema.JsonObject) => Definition.schemaFault(withSchema(parameters))

  it("P74: a schema whose root does not say that it is an object has a fault", () => {
    for (const schema of [
      {},
      { type: "string" },
      { type: ["object"] },
      { type: ["object", "null"] },
      { anyOf: [{ type: "object" }] },
      { $ref: "#/$defs/a", $defs: { a: { type: "object" } } }
    ]) {
      assert.strictEqual(faultOf(schema), 'the root must say "type":"object"')
    }
    assert.isUndefined(faultOf({ type: "object" }))
    assert.isUndefined(faultOf({ type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }] }))
    assert.isUndefined(Definition.schemaFault(plain))
  })

  const region = { type: "string", "x-mcp-header": "Region" }
  const object = (properties: Schema.JsonObject, more: Schema.JsonObject = {}): Schema.JsonObject => ({
    type: "object",
    properties,
    ...more
  })

  const good: ReadonlyArray<readonly [Schema.JsonObject]> = [
    [object({ region })],
    [object({ region, count: { type: "integer", "x-mcp-header": "!#$%&'*+-.^_`|~09Az" } })],
    [object({ dry: { type: "boolean", "x-mcp-header": "Dry" }, deep: object({ deeper: object({ region }) }) })],
    // Names and data, not the keyword.
    [object({ "x-mcp-header": { type: "string" } })],
    [object({ a: { type: "object", const: { "x-mcp-header": "" }, enum: [{ "x-mcp-header": "" }] } })],
    [object({ a: { default: { "x-mcp-header": 1 }, examples: [{ "x-mcp-header": 1 }] } })],
    [object({ default: region, enum: { ...region, "x-mcp-header": "Other" } })]
  ]
  it.each(good)("P26: a header may be declared so: %j", (schema) => {
    assert.isUndefined(faultOf(schema))
  })

  const bad: ReadonlyArray<readonly [Schema.JsonObject, string]> = [
    [object({}, { "x-mcp-header": "Root" }), "at the root: only a property"],
    [object({ a: { ...region, "x-mcp-header": "" } }), 'at a: "" is not a header name'],
    [object({ a: { ...region, "x-mcp-header": "My Region" } }), 'at a: "My Region" is not a header name'],
    [object({ a: { ...region, "x-mcp-header": "a\nb" } }), "is not a header name"],
    [object({ a: { ...region, "x-mcp-header": true } }), "at a: true is not a header name"],
    [object({ a: { ...region, type: "number" } }), "at a: only an integer, a string or a boolean"],
    [object({ a: { ...region, type: "object" } }), "at a: only an integer, a string or a boolean"],
    [object({ a: { ...region, type: ["string"] } }), "at a: only an integer, a string or a boolean"],
    [object({ a: { "x-mcp-header": "Region" } }), "at a: only an integer, a string or a boolean"],
    [
      object({ a: region, b: object({ c: { ...region, "x-mcp-header": "REGION" } }) }),
      'at b.c: "REGION" is taken by a'
    ],
    [object({ a: { type: "array", items: region } }), "at a.items: only a property"],
    [object({ a: { type: "array", items: object({ b: region }) } }), "at a.items.b: only a property"],
    [object({ a: { type: "array", prefixItems: [region] } }), "at a.prefixItems: only a property"],
    [object({}, { anyOf: [object({ a: region })] }), "at anyOf.a: only a property"],
    [object({}, { if: object({ a: region }) }), "at if.a: only a property"],
    [object({}, { additionalProperties: region }), "at additionalProperties: only a property"],
    [object({}, { patternProperties: { "^a": region } }), "at patternProperties.^a: only a property"],
    [object({ a: { $ref: "#/$defs/r" } }, { $defs: { r: region } }), "at $defs.r: only a property"],
    [object({}, { dependentSchemas: { a: object({ b: region }) } }), "at dependentSchemas.a.b: only a property"]
  ]
  it.each(bad)("P26: a header may not be declared so: %j", (schema, words) => {
    assert.include(faultOf(schema), words)
  })
})
