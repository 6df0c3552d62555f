import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { names, readings, rows, type Subject } from "./properties.ts"
import * as Executor from "@agenttool/core/Executor"
import type * as Facts from "@agenttool/core/Facts"
import * as Properties from "@agenttool/core/Properties"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"

const plain = Tool.raw("plain", { execute: () => Effect.succeed("") })

/** A tool that must not run: to be asked only. */
const untouchable = Tool.raw("untouchable", { execute: () => Effect.die("the tool ran") })

const fallbacks = Object.fromEntries(names.map((name) => [name, rows[name].fallback]))

describe("all properties", () => {
  it.effect("C28: every property has a default, one combinator and one reader, which applies the default", () =>
    Effect.gen(function* () {
      // A property that is not in the table of the tests is missing everywhere.
      assert.deepStrictEqual(Object.keys(Properties.defaults).sort(), [...names].sort())
      assert.deepStrictEqual(yield* readings(plain), fallbacks)
      for (const name of names) {
        const { given, set } = rows[name]
        assert.deepStrictEqual(yield* readings(set(plain)), { ...fallbacks, [name]: given }, name)
      }
    })
  )

  it.effect("C28: what one combinator sets, the others leave alone", () =>
    Effect.gen(function* () {
      // A sequential tool has neither resource nor barrier to its readers (C37, C41).
      const others = names.filter((name) => name !== "sequential")
      const expected = { ...Object.fromEntries(names.map((name) => [name, rows[name].given])), sequential: false }
      for (const order of [others, others.toReversed()]) {
        const all = order.reduce<Subject>((tool, name) => rows[name].set(tool), plain)
        assert.deepStrictEqual(yield* readings(all), expected)
        assert.deepStrictEqual(yield* readings(Tool.sequential(all)), {
          ...expected,
          sequential: true,
          barrier: false,
          resource: ""
        })
      }
      // A tool is a value: the first one is as it was.
      assert.deepStrictEqual(yield* readings(plain), fallbacks)
    })
  )

  it.effect("C29: the defaults are those of the contract", () =>
    Effect.gen(function* () {
      assert.isFalse(Tool.isStrict(plain))
      assert.isFalse(Tool.isSequential(plain))
      assert.isFalse(Tool.isBarrier(plain))
      assert.strictEqual(Tool.resourceOf(plain), "")
      assert.isTrue(Option.isNone(Tool.flowOf(plain)))
      assert.isTrue(Option.isNone(Tool.annotationsOf(plain)))
      assert.deepStrictEqual(yield* Tool.confinedOf(plain, "{}"), { confined: false, by: "" })
      assert.strictEqual(yield* Tool.replayOf(plain, "{}"), "unknown")
      assert.deepStrictEqual(yield* Tool.factsOf(plain, "{}"), { claims: false })
      assert.isTrue(Option.isNone(Tool.closerOf(plain)))
    })
  )

  it.effect("C19: an option without its function is as if it had not been given, on both kinds of tools", () =>
    Effect.gen(function* () {
      for (const tool of [plain, Tool.make("typed", { execute: () => Effect.void })]) {
        const nothing = tool.pipe(
          Tool.confined(undefined),
          Tool.replay(undefined),
          Tool.facts(undefined),
          Tool.closer(undefined),
          Tool.resource("")
        )
        assert.deepStrictEqual(yield* readings(nothing), fallbacks)
        // Nor does it take away what is there.
        const all = names.reduce<Subject>((made, name) => rows[name].set(made), tool)
        const still = all.pipe(
          Tool.confined(undefined),
          Tool.replay(undefined),
          Tool.facts(undefined),
          Tool.closer(undefined)
        )
        assert.deepStrictEqual(yield* readings(still), yield* readings(all))
      }
    })
  )

  class Sandbox extends Context.Service<Sandbox, { readonly name: string }>()("test/Sandbox") {}

  const asked: Array<readonly [string, unknown, string]> = []
  const asking = untouchable.pipe(
    Tool.confined((args, raw) => {
      asked.push(["confined", args, raw])
      return Effect.map(Effect.service(Sandbox), ({ name }) => ({ confined: true, by: name }))
    }),
    Tool.replay((args, raw) => {
      asked.push(["replay", args, raw])
      return Effect.map(Effect.service(Sandbox), () => "safe" as const)
    }),
    Tool.facts((args, raw) => {
      asked.push(["facts", args, raw])
      return Effect.map(Effect.service(Sandbox), ({ name }) => ({ calls: [{ tool: name }] }))
    })
  )

  it.effect(
    "C30, C64: a claim is asked with both forms of the arguments, under the context, and the tool does not run",
    () =>
      Effect.gen(function* () {
        asked.length = 0
        const raw = '{"n": 1.50}'
        const sandboxed = Effect.provideService(
          Effect.all([Tool.confinedOf(asking, raw), Tool.replayOf(asking, raw), Tool.factsOf(asking, raw)]),
          Sandbox,
          { name: "seatbelt" }
        )
        assert.deepStrictEqual(yield* sandboxed, [
          { confined: true, by: "seatbelt" },
          "safe",
          { claims: true, facts: { calls: [{ tool: "seatbelt" }] } }
        ])
        assert.deepStrictEqual(asked, [
          ["confined", { n: 1.5 }, raw],
          ["replay", { n: 1.5 }, raw],
          ["facts", { n: 1.5 }, raw]
        ])
        // Arguments that are no JSON have no parsed form; the question is asked all the same.
        yield* Effect.provideService(Tool.replayOf(asking, "{"), Sandbox, { name: "" })
        assert.deepStrictEqual(asked.at(-1), ["replay", undefined, "{"])
      })
  )

  it.effect("C31: nothing here enforces a claim, and running a tool asks for none", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const count = Tool.raw("count", { execute: (call) => Effect.sync(() => void ran.push(call.arguments)) }).pipe(
        Tool.confined(() => Effect.die("asked")),
        Tool.replay(() => Effect.die("asked")),
        Tool.facts(() => Effect.die("asked")),
        Tool.flow({ untrusted: true, sends: true }),
        Tool.annotate({ destructive: true, readOnly: true })
      )
      yield* Tool.run(count, {})
      const outcome = yield* Executor.run(
        [count],
        [
          { id: "c1", name: "count", arguments: '{"a":1}' },
          { id: "c2", name: "count", arguments: '{"a":1}' }
        ]
      )
      assert.deepStrictEqual(ran, ["{}", '{"a":1}', '{"a":1}'])
      assert.deepStrictEqual(
        Executor.outputs(outcome).map(({ output }) => output),
        ["", ""]
      )
    })
  )
})

describe("strict, barrier, flow, annotations", () => {
  it("C33: a generated schema is made to keep the strict rules, a supplied one is taken at its word", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } }
    const supplied = Tool.strict(Tool.raw("t", { parameters: schema, execute: () => Effect.void }))
    assert.isTrue(Tool.isStrict(supplied))
    assert.strictEqual(supplied.parameters, schema)
    assert.strictEqual(Tool.definition(supplied).strict, true)
    const generated = Tool.strict(Tool.make("t", { execute: () => Effect.void }))
    assert.isTrue(Tool.isStrict(generated))
    assert.deepStrictEqual(generated.parameters, {
      type: "object",
      properties: {},
      required: [],
      additionalProperties: false
    })
  })

  it("C39: one reader says whether a tool is a barrier", () => {
    assert.isFalse(Tool.isBarrier(plain))
    assert.isTrue(Tool.isBarrier(Tool.barrier(plain)))
    assert.isFalse(Tool.isSequential(Tool.barrier(plain)))
  })

  it("C42: one reader says what a tool states of its flow; the default is nothing", () => {
    assert.deepStrictEqual(Tool.flowOf(plain), Option.none())
    assert.deepStrictEqual(
      Tool.flowOf(Tool.flow(plain, { sends: true, untrusted: true })),
      Option.some({ untrusted: true, sends: true })
    )
  })

  it.each<readonly [Properties.Flow, string | undefined]>([
    [{ untrusted: true, sends: true }, '{"untrusted":true,"sends":true}'],
    [{ sends: true, untrusted: true }, '{"untrusted":true,"sends":true}'],
    [{ untrusted: true, sends: false }, '{"untrusted":true}'],
    [{ untrusted: undefined, sends: true }, '{"sends":true}'],
    [{ untrusted: false, sends: false }, undefined],
    [{}, undefined]
  ])("C43: of the flow %j the false members are left out, and one without members is not stated", (flow, json) => {
    const stated = Tool.flowOf(plain.pipe(Tool.flow(flow)))
    assert.strictEqual(JSON.stringify(Option.getOrUndefined(stated)), json)
  })

  it("C44: each hint of MCP is read as it was set, false as false, and hints add up", () => {
    const all = { title: "T", readOnly: false, destructive: true, idempotent: false, openWorld: true }
    assert.deepStrictEqual(Tool.annotationsOf(plain.pipe(Tool.annotate(all))), Option.some(all))
    const hints = Object.entries(all).map(([name, value]) => ({ [name]: value }))
    const oneByOne = hints.reduce((tool, hint) => Tool.annotate(tool, hint), plain)
    assert.deepStrictEqual(Tool.annotationsOf(oneByOne), Option.some(all))
    const changed = oneByOne.pipe(Tool.annotate({ openWorld: false }))
    assert.deepStrictEqual(Tool.annotationsOf(changed), Option.some({ ...all, openWorld: false }))
  })

  it("C46: what is not stated reads as undefined, and an empty object states nothing", () => {
    assert.deepStrictEqual(Tool.annotationsOf(plain), Option.none())
    assert.deepStrictEqual(Tool.annotationsOf(plain.pipe(Tool.annotate({}))), Option.none())
    assert.deepStrictEqual(Tool.annotationsOf(plain.pipe(Tool.annotate({ readOnly: undefined }))), Option.none())
    const some = Option.getOrThrow(Tool.annotationsOf(plain.pipe(Tool.annotate({ readOnly: false, title: undefined }))))
    assert.deepStrictEqual(Object.keys(some), ["readOnly"])
    assert.strictEqual(some.destructive, undefined)
  })
})

describe("confined", () => {
  const shell = untouchable.pipe(
    Tool.confined((args) =>
      Effect.succeed(
        JSON.stringify(args) === '{"sandbox":true}' ? { confined: true, by: "seatbelt" } : { confined: false, by: "" }
      )
    )
  )

  it.effect("C48: whether a call is confined, and by what, is asked per call and handed on as it is", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tool.confinedOf(shell, '{"sandbox":true}'), { confined: true, by: "seatbelt" })
      assert.deepStrictEqual(yield* Tool.confinedOf(shell, "{}"), { confined: false, by: "" })
      const odd = plain.pipe(Tool.confined(() => Effect.succeed({ confined: false, by: "landlock" })))
      assert.deepStrictEqual(yield* Tool.confinedOf(odd, "{}"), { confined: false, by: "landlock" })
    })
  )

  it.effect("C49: a tool that does not answer is not confined", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tool.confinedOf(plain, '{"sandbox":true}'), { confined: false, by: "" })
    })
  )
})

describe("replay", () => {
  it.effect("C50: the three answers, always the same or one per call", () =>
    Effect.gen(function* () {
      for (const answer of ["safe", "keyed", "unknown"] as const) {
        assert.strictEqual(yield* Tool.replayOf(untouchable.pipe(Tool.replay(answer)), "{}"), answer)
        const perCall = untouchable.pipe(Tool.replay((_args, raw) => Effect.succeed(raw === "[]" ? answer : "unknown")))
        assert.strictEqual(yield* Tool.replayOf(perCall, "[]"), answer)
        assert.strictEqual(yield* Tool.replayOf(perCall, "{}"), "unknown")
      }
    })
  )

  it.effect("C51: an answer that the reader does not know, and none at all, is unknown", () =>
    Effect.gen(function* () {
      for (const answer of ["maybe", "SAFE", undefined, true]) {
        const odd = plain.pipe(Tool.replay(() => Effect.succeed(answer as Properties.Replay)))
        assert.strictEqual(yield* Tool.replayOf(odd, "{}"), "unknown")
      }
      const always = plain.pipe(Tool.replay("maybe" as Properties.Replay))
      assert.strictEqual(yield* Tool.replayOf(always, "{}"), "unknown")
      assert.strictEqual(yield* Tool.replayOf(plain, "{}"), "unknown")
    })
  )

  it.effect("C47: no annotation answers for replay, and replay for no annotation", () =>
    Effect.gen(function* () {
      const harmless = plain.pipe(Tool.annotate({ readOnly: true, idempotent: true, destructive: false }))
      assert.strictEqual(yield* Tool.replayOf(harmless, "{}"), "unknown")
      assert.isTrue(Option.isNone(Tool.annotationsOf(plain.pipe(Tool.replay("safe")))))
    })
  )
})

describe("facts", () => {
  const claiming = (facts: Facts.Facts) => untouchable.pipe(Tool.facts(() => Effect.succeed(facts)))

  it.effect("C58: no calls, an empty list of calls, and calls are three different answers", () =>
    Effect.gen(function* () {
      const answers: ReadonlyArray<Facts.Facts> = [{}, { calls: [] }, { calls: [{ tool: "read_file" }] }]
      const read = yield* Effect.forEach(answers, (facts) => Tool.factsOf(claiming(facts), "{}"))
      assert.deepStrictEqual(
        read.map((claim) => JSON.stringify(claim)),
        [
          '{"claims":true,"facts":{}}',
          '{"claims":true,"facts":{"calls":[]}}',
          '{"claims":true,"facts":{"calls":[{"tool":"read_file"}]}}'
        ]
      )
    })
  )

  it.effect('C59: an entry is handed on as it is: a tool, "" for the tool itself, its arguments and words', () =>
    Effect.gen(function* () {
      const calls: ReadonlyArray<Facts.FactCall> = [
        { tool: "", args: { path: ".env" }, text: "reads a file that may hold secrets" },
        { tool: "write_file", args: { path: "out/x" } },
        { tool: "nothing more" }
      ]
      assert.deepStrictEqual(yield* Tool.factsOf(claiming({ calls }), "{}"), { claims: true, facts: { calls } })
    })
  )

  it.effect(
    "C60: a rewrite is read and not acted on: what runs is what the harness gives, and the tool knows its stamp",
    () =>
      Effect.gen(function* () {
        const shell = Tool.raw("shell", {
          execute: (call) =>
            Effect.succeed(call.arguments.includes("stamp") ? "the judged plan" : "what the model wrote")
        }).pipe(Tool.facts((args) => Effect.succeed({ rewrite: { stamp: "s1", plan: JSON.stringify(args) } })))
        const claim = yield* Tool.factsOf(shell, '{"command":"ls"}')
        assert.deepStrictEqual(claim, { claims: true, facts: { rewrite: { stamp: "s1", plan: '{"command":"ls"}' } } })
        const run = (text: string) =>
          Effect.map(Executor.run([shell], [{ id: "c", name: "shell", arguments: text }]), (outcome) =>
            Executor.outputs(outcome).map(({ output }) => output)
          )
        assert.deepStrictEqual(yield* run('{"command":"ls"}'), ["what the model wrote"])
        const rewrite = "facts" in claim ? claim.facts.rewrite : undefined
        assert.deepStrictEqual(yield* run(JSON.stringify(rewrite)), ["the judged plan"])
      })
  )

  it.effect("C61, C63: what the question fails with is passed on unchanged", () =>
    Effect.gen(function* () {
      const error = { why: "the plan has a loop" }
      const claim = yield* Tool.factsOf(untouchable.pipe(Tool.facts(() => Effect.fail(error))), "{}")
      assert.isTrue("error" in claim && claim.error === error)
      assert.isTrue(claim.claims)
      assert.isFalse("facts" in claim)
    })
  )

  it("C62: whether a tool claims is known without asking", () => {
    const dies = untouchable.pipe(Tool.facts(() => Effect.die("asked")))
    assert.isTrue(Tool.claimsFacts(dies))
    assert.isFalse(Tool.claimsFacts(plain))
  })

  it.effect("C63: no claim, an answer, a failure", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tool.factsOf(plain, "{}"), { claims: false })
      assert.deepStrictEqual(yield* Tool.factsOf(claiming({ calls: [] }), "{}"), { claims: true, facts: { calls: [] } })
      const failing = plain.pipe(Tool.facts(() => Effect.fail("no")))
      assert.deepStrictEqual(yield* Tool.factsOf(failing, "{}"), { claims: true, error: "no" })
    })
  )

  it.effect("C49, C51, C61: where a claim's service cannot be built, nothing is claimed or the claim fails", () =>
    Effect.gen(function* () {
      class Policy extends Context.Service<Policy, object>()("test/Policy") {}
      const needing = untouchable.pipe(
        Tool.confined(() => Effect.map(Effect.service(Policy), () => ({ confined: true, by: "x" }))),
        Tool.replay(() => Effect.map(Effect.service(Policy), () => "safe" as const)),
        Tool.facts(() => Effect.map(Effect.service(Policy), () => ({})))
      )
      const broken = needing.pipe(Tool.provide(Layer.effect(Policy, Effect.fail("no policy"))))
      assert.deepStrictEqual(yield* Tool.confinedOf(broken, "{}"), { confined: false, by: "" })
      assert.strictEqual(yield* Tool.replayOf(broken, "{}"), "unknown")
      assert.deepStrictEqual(yield* Tool.factsOf(broken, "{}"), { claims: true, error: "no policy" })
    })
  )

  it.effect("C64: a harness that asks before it runs gets the claim under the call's context", () =>
    Effect.gen(function* () {
      const shell = untouchable.pipe(
        Tool.facts(() =>
          Effect.map(ToolCall.option, (call) => ({ calls: [{ tool: Option.isSome(call) ? call.value.id : "" }] }))
        )
      )
      const call = ToolCall.make({ id: "call_7", tool: "shell" })
      const claim = yield* Effect.provideService(Tool.factsOf(shell, call.arguments), ToolCall.ToolCall, call)
      assert.deepStrictEqual(claim, { claims: true, facts: { calls: [{ tool: "call_7" }] } })
    })
  )
})
