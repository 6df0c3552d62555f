/**
 * Faults that people met in servers of this kind, and that no other suite is named after: each for its whole kind, over the
 * wire in both eras. The others are in the suites of what they are about, and have their number in the title.
 */
import { Progress, Tool } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { connect, type McpTest } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { ask, legacyAsk, listen, modernAsk, open, responseOf } from "./support/endpoint.ts"
import { legacyCall } from "./support/rawMessages.ts"

const eras = ["2026-07-28", "2025-11-25"] as const

/** Every member name that stands anywhere in a JSON value. */
const namesIn = (value: unknown): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) => [...(Array.isArray(value) ? [] : [name]), ...namesIn(inner)])

interface Listed {
  readonly inputSchema: { readonly properties?: Readonly<Record<string, unknown>> }
  readonly outputSchema?: unknown
}

/** What a connected server lists, as it is on the wire: the client's own reading puts members in an order of its own. */
const listedBy = ({ client, messages }: McpTest): Effect.Effect<ReadonlyArray<Listed>> =>
  Effect.flatMap(
    Effect.promise(() => client.listTools()),
    () =>
      Effect.map(messages, (all) => {
        const { message } = all.findLast(({ from }) => from === "server") ?? assert.fail("no answer")
        return (message as unknown as { result: { tools: ReadonlyArray<Listed> } }).result.tools // a listing
      })
  )

const listed = (protocolVersion: (typeof eras)[number], ...tools: ReadonlyArray<Tool.Tool<never, never>>) =>
  Effect.flatMap(connect({ tools, protocolVersion }), listedBy)

describe("S-09: no references", () => {
  const Address = Schema.Struct({ street: Schema.String, zip: Schema.String }).annotate({ identifier: "Address" })
  const Color = Schema.Literals(["red", "green"]).annotate({ identifier: "Color" })
  class Point extends Schema.Class<Point>("Point")({ x: Schema.Int, y: Schema.Int }) {}

  for (const era of eras) {
    it.effect("S-09: what a schema uses twice is written out twice", () =>
      Effect.gen(function* () {
        const order = Tool.make("order", {
          parameters: Schema.Struct({
            billing: Address,
            shipping: Schema.optionalKey(Address),
            others: Schema.Array(Address),
            inner: Color,
            outer: Color,
            byName: Schema.Record(Schema.String, Color),
            from: Point,
            to: Point
          }),
          success: Schema.Struct({ first: Address, second: Address }),
          execute: () => Effect.succeed({ first: { street: "a", zip: "1" }, second: { street: "b", zip: "2" } })
        })
        const [definition] = yield* listed(era, order)
        const names = namesIn([definition?.inputSchema, definition?.outputSchema])
        for (const reference of ["$ref", "$defs", "definitions", "$id", "$anchor", "$dynamicRef"]) {
          assert.notInclude(names, reference)
        }
        const { billing, from, inner, outer, shipping, to } = definition?.inputSchema.properties ?? {}
        assert.deepInclude(billing, { type: "object", required: ["street", "zip"] })
        assert.deepStrictEqual(shipping, billing)
        assert.deepInclude(inner, { enum: ["red", "green"] })
        assert.deepStrictEqual(outer, inner)
        assert.deepInclude(from, { type: "object", required: ["x", "y"] })
        assert.deepStrictEqual(to, from)
      }).pipe(Effect.scoped)
    )
  }
})

describe("S-10: an object at the root", () => {
  const A = Schema.Struct({ a: Schema.String })
  const B = Schema.Struct({ b: Schema.String })
  const execute = () => Effect.succeed("ran")

  it("S-10: a typed tool with another root is refused where it is built, by its name", () => {
    const roots: Readonly<Record<string, Schema.Constraint>> = {
      "union of structs": Schema.Union([A, B]),
      "nullable struct": Schema.NullOr(A),
      array: Schema.Array(A),
      string: Schema.String,
      literal: Schema.Literal("x"),
      unknown: Schema.Unknown
    }
    for (const [kind, parameters] of Object.entries(roots)) {
      // What the types refuse as well, where they can see it.
      const build = () => Tool.make("odd_root", { parameters: parameters as typeof A, execute })
      assert.throws(build, /odd_root/, kind)
    }
  })

  for (const era of eras) {
    it.effect("S-10: a hand-written schema with an object root is served as it is, whatever stands beside it", () =>
      Effect.gen(function* () {
        const parameters = {
          anyOf: [{ required: ["a"] }, { required: ["b"] }],
          type: "object",
          properties: { a: { type: "string" }, b: { type: "string" } }
        } as const
        const [definition] = yield* listed(era, Tool.raw("either", { parameters, execute }))
        assert.strictEqual(JSON.stringify(definition?.inputSchema), JSON.stringify(parameters))
      }).pipe(Effect.scoped)
    )
  }

  it.effect("S-10: one with another root is not served at all, and the error names the tool", () =>
    Effect.gen(function* () {
      for (const parameters of [{ anyOf: [{ type: "object" }] }, { type: "array" }, {}, { type: ["object", "null"] }]) {
        const error = yield* Effect.flip(connect({ tools: [Tool.raw("odd_root", { parameters, execute })] }))
        assert.strictEqual(
          error.message,
          'mcpserver: tool "odd_root": schema: the root must say "type":"object"',
          JSON.stringify(parameters)
        )
      }
    }).pipe(Effect.scoped)
  )
})

describe("S-11: dialects", () => {
  const draft07 = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    definitions: { size: { type: "integer", minimum: 1 } },
    properties: { size: { $ref: "#/definitions/size" }, kind: { const: "box" } },
    dependencies: { kind: ["size"] },
    required: ["kind"]
  } as const
  const typed = Tool.make("typed", {
    parameters: Schema.Struct({ size: Schema.Int }),
    execute: ({ size }) => Effect.succeed(`typed ${size}`)
  })
  const old = Tool.raw("old", { parameters: draft07, execute: () => Effect.succeed("old") })

  for (const protocolVersion of eras) {
    it.effect("S-11: a typed tool names none, a hand-written one is listed byte for byte, and both are checked", () =>
      Effect.gen(function* () {
        const mcp = yield* connect({ tools: [typed, old], protocolVersion })
        const { call } = mcp
        const tools = yield* listedBy(mcp)
        assert.notInclude(namesIn(tools[0]?.inputSchema), "$schema")
        assert.strictEqual(JSON.stringify(tools[1]?.inputSchema), JSON.stringify(draft07))
        const textOf = (name: string, args: Readonly<Record<string, unknown>>) =>
          Effect.map(call(name, args), ({ content, isError }) => {
            const [block] = content
            return [isError ?? false, block?.type === "text" ? block.text : ""] as const
          })
        assert.deepStrictEqual(yield* textOf("typed", { size: 3 }), [false, "typed 3"])
        assert.deepStrictEqual(yield* textOf("old", { kind: "box", size: 3 }), [false, "old"])
        for (const [name, args] of [
          ["typed", { size: "3" }],
          ["typed", {}],
          ["old", { size: 3 }],
          ["old", { kind: "bag", size: 3 }],
          ["old", { kind: "box", size: 0 }],
          // Only draft-07 knows this keyword.
          ["old", { kind: "box" }]
        ] as const) {
          const [isError, text] = yield* textOf(name, args)
          assert.isTrue(isError, JSON.stringify([name, args]))
          assert.match(text, /^invalid arguments: /)
        }
      }).pipe(Effect.scoped)
    )
  }
})

describe("S-04, S-05: progress tokens", () => {
  it.live("S-04, S-05: whatever token a client has is the token it gets, with its type; none is none", () =>
    Effect.gen(function* () {
      const steps = Tool.make("steps", {
        execute: () =>
          Effect.as(Effect.andThen(Progress.report("one"), Progress.report({ progress: 7, total: 9 })), "done")
      })
      const { url } = yield* listen({ registrations: McpServer.tools(steps) })
      const session = yield* open(url)
      const tokensOf = (token: unknown) =>
        Effect.gen(function* () {
          const meta = token === undefined ? {} : { progressToken: token }
          const { params, ...rest } = legacyCall(1, "steps")
          const answers = [
            yield* ask(url, modernAsk("steps", { meta })),
            yield* ask(url, legacyAsk(session, { ...rest, params: { ...params, _meta: meta } }))
          ]
          return answers.map((answer) => {
            assert.strictEqual(responseOf(answer).result?.content?.[0]?.text, "done")
            return answer.messages.slice(0, -1).map((message) => message.params?.progressToken)
          })
        })
      for (const token of [0, 1, -1, 9_007_199_254_740_991, "", "0", "abc", "__proto__", "ü\u2028\n"]) {
        assert.deepStrictEqual(yield* tokensOf(token), [
          [token, token],
          [token, token]
        ])
      }
      assert.deepStrictEqual(yield* tokensOf(undefined), [[], []])
    })
  )
})

describe("S-17: no stack leaves the house", () => {
  it.live("S-17: nothing of a defect reaches a client, of whatever kind it is, and the next call works", () =>
    Effect.gen(function* () {
      class Secret extends Error {
        override readonly name = "SecretError"
        readonly password = "hunter2"
      }
      const circular: { self?: unknown; toString?: () => string } = {}
      circular.self = circular
      const defects: Readonly<Record<string, () => Effect.Effect<string>>> = {
        error: () => Effect.die(new Secret("hunter2", { cause: new Error("hunter2") })),
        thrown: () => {
          throw new Secret("hunter2")
        },
        text: () => Effect.die("hunter2 at /etc/passwd:1:1"),
        nothing: () => Effect.die(undefined),
        cyclic: () => Effect.die(circular),
        unprintable: () =>
          Effect.die({
            toString: () => {
              throw new Error("hunter2")
            }
          }),
        rejected: () => Effect.promise(() => Promise.reject(new Secret("hunter2"))),
        inFinalizer: () => Effect.ensuring(Effect.succeed("fine"), Effect.die(new Secret("hunter2"))),
        inFiber: () =>
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(Effect.die(new Secret("hunter2")))
            yield* Fiber.join(fiber)
            return "fine"
          })
      }
      const tools = Object.entries(defects).map(([name, execute]) => Tool.make(name, { execute }))
      const good = Tool.make("good", { execute: () => Effect.succeed("good") })
      const { log, url } = yield* listen({ registrations: McpServer.tools(...tools, good) })
      const session = yield* open(url)
      for (const name of Object.keys(defects)) {
        for (const request of [modernAsk(name), legacyAsk(session, legacyCall(name, name))]) {
          const answer = yield* ask(url, request)
          const { result } = responseOf(answer)
          assert.strictEqual(result?.isError, true, answer.text)
          const text = result?.content?.[0]?.text ?? ""
          assert.match(text, new RegExp(`^tool "${name}" failed unexpectedly \\([0-9a-f]{8}\\)$`))
          for (const secret of ["hunter2", "SecretError", "/etc/", ".ts", "    at "])
            assert.notInclude(answer.text, secret)
          // The same reference leads to the cause.
          assert.include(log(), /\(([0-9a-f]{8})\)/.exec(text)?.[1] ?? "no reference")
          assert.strictEqual(responseOf(yield* ask(url, modernAsk("good"))).result?.content?.[0]?.text, "good")
        }
      }
    })
  )
})
