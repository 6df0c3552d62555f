import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Option, Result, Schema } from "effect"
import { derivers, names, readings, rows, type Subject } from "./properties.ts"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"

const Parameters = Schema.Struct({
  path: Schema.String,
  limit: Schema.optionalKey(Schema.Int),
  level: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const jsonSchema = { type: "object", properties: { path: { type: "string" } } }

const typed = Tool.make("typed", { parameters: Parameters, execute: (given) => Effect.succeed(given) })
const byHand = Tool.make("byHand", { parameters: Parameters, jsonSchema, execute: (given) => Effect.succeed(given) })
const raw = Tool.raw("raw", { parameters: jsonSchema, execute: (call) => Effect.succeed(call.arguments) })

const kinds: Record<string, Subject> = { typed, byHand, raw }

/** The output of a call with this text, or the words of its failure. */
const run = (tool: Tool.Tool<unknown>, text: string) =>
  Effect.match(Tool.runCall(tool, ToolCall.make({ id: "c", tool: tool.name, arguments: text })), {
    onSuccess: ({ output }) => output,
    onFailure: (failure) => ToolError.messageOf(failure)
  })

describe("properties survive every combinator", () => {
  it("C79: every export of Tool that makes another tool is in the tables of these tests", () => {
    const setters = [
      ...["annotate", "barrier", "closer", "confined", "facts", "flow", "replay", "resource", "sequential", "setting"],
      "strict"
    ]
    const others = [
      // Build, run, look at a tool.
      ...["make", "raw", "run", "runCall", "isTool", "definition", "inputSchema", "prepare", "faultOf", "failureText"],
      "unwrap",
      // Readers.
      ...["annotationsOf", "claimsFacts", "closerOf", "confinedOf", "factsOf", "flowOf", "isBarrier", "isSequential"],
      ...["isStrict", "replayOf", "resourceOf", "settingOf"]
    ]
    assert.deepStrictEqual(
      Object.keys(Tool).sort(),
      [...new Set([...setters, ...others, ...Object.keys(derivers)])].sort()
    )
    assert.lengthOf(setters, names.length)
  })

  const both = { nothing: (tool: Subject) => tool, ...derivers }

  for (const [kind, tool] of Object.entries(kinds)) {
    it.effect(`C32, C74, C79: whatever a ${kind} tool is wrapped in, each property reads as it was set`, () =>
      Effect.gen(function* () {
        for (const [outerName, outer] of Object.entries(both)) {
          for (const [innerName, inner] of Object.entries(both)) {
            const strict = outerName === "strict" || innerName === "strict"
            const where = `${outerName}(${innerName}(${kind}))`
            const expected = {
              ...Object.fromEntries(names.map((name) => [name, rows[name].fallback])),
              strict
            }
            assert.deepStrictEqual(yield* readings(outer(inner(tool))), expected, where)
            for (const name of names) {
              const { given, set } = rows[name]
              for (const made of [outer(inner(set(tool))), outer(set(inner(tool))), set(outer(inner(tool)))]) {
                assert.deepStrictEqual(yield* readings(made), { ...expected, [name]: given }, `${name} of ${where}`)
              }
            }
          }
        }
      })
    )
  }

  it.effect("C79: a claim that needs a service gets it from what provides it to the tool", () =>
    Effect.gen(function* () {
      class Sandbox extends Context.Service<Sandbox, string>()("test/Sandbox") {}
      const needing = Tool.make("t", { execute: () => Effect.service(Sandbox) }).pipe(
        Tool.confined(() => Effect.map(Effect.service(Sandbox), (by) => ({ confined: true, by }))),
        Tool.replay(() => Effect.map(Effect.service(Sandbox), () => "safe" as const)),
        Tool.facts(() => Effect.map(Effect.service(Sandbox), (tool) => ({ calls: [{ tool }] })))
      )
      const given = [
        Tool.provideService(needing, Sandbox, "seatbelt"),
        needing.pipe(Tool.provideService(Sandbox, "seatbelt"), Tool.strict),
        needing.pipe(Tool.strict, Tool.provide(Layer.succeed(Sandbox, "seatbelt"))),
        Tool.mapEffects(needing, (effect) => Effect.provideService(effect, Sandbox, "seatbelt")),
        needing.pipe(
          Tool.wrap((execute) => execute),
          Tool.provide(Layer.succeed(Sandbox, "seatbelt")),
          Tool.nullAsAbsent
        )
      ]
      for (const tool of given) {
        assert.strictEqual((yield* Tool.run(tool, {})).output, "seatbelt")
        assert.deepStrictEqual(yield* Tool.confinedOf(tool, "{}"), { confined: true, by: "seatbelt" })
        assert.strictEqual(yield* Tool.replayOf(tool, "{}"), "safe")
        assert.deepStrictEqual(yield* Tool.factsOf(tool, "{}"), {
          claims: true,
          facts: { calls: [{ tool: "seatbelt" }] }
        })
      }
    })
  )
})

const wrap = <E, R, Args, A>(tool: Tool.Tool<E, R, Args, A>) => Tool.wrap(tool, (execute) => execute)

describe("Tool.wrap", () => {
  it.effect("C73: only the running differs, and it is what the function makes of the inner one", () =>
    Effect.gen(function* () {
      const seen: Array<Tool.Any> = []
      const shouting = typed.pipe(
        Tool.wrap((execute, tool) => {
          seen.push(tool)
          return (call) =>
            Effect.map(execute(call), (result) => ({ ...result, output: `${call.id}: ${result.output}` }))
        })
      )
      assert.deepStrictEqual(seen, [typed])
      assert.strictEqual((yield* Tool.run(shouting, { path: "/x" })).output, 'call_1: {"path":"/x"}')
      assert.deepStrictEqual(Tool.definition(shouting), Tool.definition(typed))
      for (const member of ["name", "description", "parameters", "success", "properties"] as const) {
        assert.strictEqual(shouting[member], typed[member])
      }
      // The arguments are checked inside, with the inner tool's words.
      assert.strictEqual(yield* run(shouting, '{"path":1}'), "invalid arguments: path: expected string, got 1")
    })
  )

  it.effect("C73: a question about a call is asked of the inner tool, with the same context and arguments", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const claiming = raw.pipe(
        Tool.facts((args, text) =>
          Effect.map(ToolCall.option, (call) => {
            asked.push([args, text, Option.map(call, ({ id }) => id)])
            return {}
          })
        )
      )
      const wrapper = claiming.pipe(Tool.wrap(() => () => Effect.die("the tool ran")))
      const call = ToolCall.make({ id: "call_9", tool: "raw" })
      for (const tool of [claiming, wrapper]) {
        yield* Effect.provideService(Tool.factsOf(tool, '{"a": 1.0}'), ToolCall.ToolCall, call)
      }
      assert.deepStrictEqual(asked, Array(2).fill([{ a: 1 }, '{"a": 1.0}', Option.some("call_9")]))
    })
  )

  it.effect("C32: what the wrapper's author changes on purpose changes on the wrapper alone", () =>
    Effect.gen(function* () {
      const inner = raw.pipe(Tool.replay("safe"), Tool.annotate({ readOnly: true }))
      const wrapper = inner.pipe(
        Tool.wrap((execute) => execute),
        Tool.replay("unknown"),
        Tool.annotate({ readOnly: false })
      )
      assert.deepStrictEqual(
        [yield* Tool.replayOf(wrapper, "{}"), yield* Tool.replayOf(inner, "{}")],
        ["unknown", "safe"]
      )
      assert.deepStrictEqual(Tool.annotationsOf(wrapper), Option.some({ readOnly: false }))
      assert.deepStrictEqual(Tool.annotationsOf(inner), Option.some({ readOnly: true }))
    })
  )

  it("C74: a wrapper claims facts and is a closer exactly when the inner tool does and is", () => {
    for (const tool of [raw, raw.pipe(Tool.facts(() => Effect.succeed({}))), raw.pipe(Tool.closer(Effect.void))]) {
      assert.strictEqual(Tool.claimsFacts(wrap(tool)), Tool.claimsFacts(tool))
      assert.strictEqual(Option.getOrUndefined(Tool.closerOf(wrap(tool))), Option.getOrUndefined(Tool.closerOf(tool)))
    }
  })

  it("C75: the resource that is handed on is the declared one, also where the reader hides it", () => {
    const sequential = raw.pipe(Tool.resource("shell:1"), Tool.sequential)
    for (const derive of Object.values(derivers)) {
      const tool = derive(derive(sequential))
      assert.strictEqual(Tool.resourceOf(tool), "")
      assert.strictEqual(tool.properties.resource, "shell:1")
    }
  })

  it("C76: a wrapper gives the wrapped tool, one layer at a time, and anything else gives nothing", () => {
    const once = wrap(raw)
    const twice = wrap(once)
    assert.strictEqual(Option.getOrThrow(Tool.unwrap(twice)), once)
    assert.strictEqual(Option.getOrThrow(Tool.unwrap(once)), raw)
    for (const other of [raw, typed, Tool.sequential(raw), undefined, null, 1, {}, { execute: () => Effect.void }]) {
      assert.isTrue(Option.isNone(Tool.unwrap(other)))
    }
    // A property that is set on the wrapper changes nothing about what it wraps.
    assert.strictEqual(Option.getOrThrow(Tool.unwrap(Tool.sequential(twice))), once)
  })

  it("C77: a missing tool and a missing function fail at once", () => {
    const message = (build: () => unknown): string =>
      Result.match(Result.try(build), {
        onFailure: (error) => `${error instanceof ToolError.ToolBuildError} ${ToolError.messageOf(error)}`,
        onSuccess: () => "built"
      })
    const exec = (execute: Subject["execute"]) => execute
    // What a program without types can do.
    const missing = undefined as never
    assert.strictEqual(
      message(() => Tool.wrap(missing, exec)),
      'true agenttool: Tool.wrap(""): nil tool'
    )
    assert.strictEqual(
      message(() => Tool.wrap(exec)(missing)),
      'true agenttool: Tool.wrap(""): nil tool'
    )
    assert.strictEqual(
      message(() => Tool.wrap({ name: "not a tool" } as never, exec)),
      'true agenttool: Tool.wrap(""): nil tool'
    )
    assert.strictEqual(
      message(() => Tool.wrap(raw, missing)),
      'true agenttool: Tool.wrap("raw"): nil function'
    )
    assert.strictEqual(
      message(() => raw.pipe(Tool.wrap(missing))),
      'true agenttool: Tool.wrap("raw"): nil function'
    )
  })
})

describe("strict and nullAsAbsent on wrappers", () => {
  /** Says on the way in and on the way out that it was there, and what it wraps. */
  const traced =
    (log: Array<string>, label: string) =>
    <E, R, Args, A>(tool: Tool.Tool<E, R, Args, A>) =>
      Tool.wrap(tool, (execute, inner) => (call) => {
        const title = Option.map(Tool.annotationsOf(inner), (hints) => hints.title)
        log.push(`${label} of ${Option.getOrElse(title, () => "nothing")}${Tool.isStrict(inner) ? ", strict" : ""}`)
        return Effect.onExit(execute(call), (exit) => Effect.sync(() => log.push(`${label} ${Exit.isSuccess(exit)}`)))
      })

  const titled = typed.pipe(Tool.annotate({ title: "typed" }))

  it.effect("C10: strict may come before or after a wrapper, or between two: the inner tool is built anew", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const [one, two] = [traced(log, "one"), traced(log, "two")]
      const strict = Tool.definition(Tool.strict(titled))
      const orders = [
        titled.pipe(Tool.strict, one, two),
        titled.pipe(one, Tool.strict, two),
        titled.pipe(one, two, Tool.strict),
        titled.pipe(one, Tool.nullAsAbsent, two, Tool.strict, Tool.strict)
      ]
      for (const tool of orders) {
        log.length = 0
        assert.deepStrictEqual(Tool.definition(tool), strict)
        assert.deepStrictEqual(Tool.annotationsOf(tool), Option.some({ title: "typed" }))
        assert.strictEqual(
          yield* run(tool, '{"path":"/x","limit":1}'),
          'invalid arguments: missing required property "level"'
        )
        assert.strictEqual(
          yield* run(tool, '{"path":"/x","limit":1,"level":null}'),
          '{"path":"/x","limit":1,"level":null}'
        )
        // Each wrapper ran once per call, in its place, and saw the tool that it wraps as it is.
        assert.deepStrictEqual(log, [
          ...["two of typed, strict", "one of typed, strict", "one false", "two false"],
          ...["two of typed, strict", "one of typed, strict", "one true", "two true"]
        ])
        const inner = Option.getOrThrow(Tool.unwrap(Option.getOrThrow(Tool.unwrap(tool))))
        assert.deepStrictEqual(Tool.definition(inner), strict)
        assert.deepStrictEqual(Tool.annotationsOf(inner), Option.some({ title: "typed" }))
      }
    })
  )

  it.effect("C168: nullAsAbsent may come before or after a wrapper; the wrapper sees the arguments as they came", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const looking = <E, R, Args, A>(tool: Tool.Tool<E, R, Args, A>) =>
        Tool.wrap(tool, (execute) => (call) => {
          seen.push(call.arguments)
          return execute(call)
        })
      const text = '{"path":"/x","limit":null,"level":null}'
      const orders = [
        typed.pipe(Tool.nullAsAbsent, looking, looking),
        typed.pipe(looking, Tool.nullAsAbsent, looking),
        typed.pipe(looking, looking, Tool.nullAsAbsent)
      ]
      for (const tool of orders) {
        seen.length = 0
        assert.deepStrictEqual(Tool.definition(tool), Tool.definition(typed))
        assert.strictEqual(yield* run(tool, text), '{"path":"/x"}')
        assert.deepStrictEqual(seen, [text, text])
      }
      assert.strictEqual(yield* run(typed, text), "invalid arguments: level: expected string, got null")
    })
  )

  it.effect(
    "C168, C169: under strict a null is in the schema or refused, whether or not nullAsAbsent is asked for",
    () =>
      Effect.gen(function* () {
        for (const tool of [
          Tool.strict(typed),
          typed.pipe(Tool.nullAsAbsent, Tool.strict),
          typed.pipe(Tool.strict, Tool.nullAsAbsent)
        ]) {
          assert.strictEqual(
            yield* run(tool, '{"path":"/x","limit":1,"level":null}'),
            '{"path":"/x","limit":1,"level":null}'
          )
          assert.strictEqual(
            yield* run(tool, '{"path":"/x","limit":null,"level":null}'),
            "invalid arguments: limit: expected integer, got null"
          )
        }
      })
  )

  it.effect("C16: of a tool with a schema of its author's, nothing is built anew", () =>
    Effect.gen(function* () {
      for (const tool of [raw, byHand]) {
        for (const made of [tool.pipe(Tool.strict), tool.pipe(traced([], ""), Tool.strict, Tool.nullAsAbsent)]) {
          assert.strictEqual(made.parameters, jsonSchema)
          assert.isTrue(Tool.isStrict(made))
          assert.strictEqual(yield* run(made, '{"path":"/x","more":1}'), yield* run(tool, '{"path":"/x","more":1}'))
        }
      }
    })
  )
})
