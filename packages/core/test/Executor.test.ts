import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Result, Schema, Stream } from "effect"
import { failureOf, inTime, jobsOf, texts } from "./batches.ts"
import * as Executor from "@agenttool/core/Executor"
import * as ExecutorError from "@agenttool/core/ExecutorError"
import * as Part from "@agenttool/core/Part"
import * as Tool from "@agenttool/core/Tool"
import * as Toolbox from "@agenttool/core/Toolbox"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"
import * as ToolResult from "@agenttool/core/ToolResult"

const echo = Tool.raw("echo", { execute: (call) => Effect.succeed(call.arguments) })
const slow = Tool.raw("slow", { execute: () => Effect.as(Effect.sleep("60 millis"), "slow") })
const fast = Tool.raw("fast", { execute: () => Effect.as(Effect.sleep("1 millis"), "fast") })
const fails = Tool.raw("fails", { execute: () => Effect.fail("disk on fire") })
const panics = Tool.raw("panics", { execute: () => Effect.die("oh no") })
const throws = Tool.raw("throws", {
  execute: (): Effect.Effect<string> => {
    throw new Error("two\n  lines")
  }
})
const interrupts = Tool.raw("interrupts", { execute: () => Effect.interrupt })

describe("Executor: calls in, outputs out", () => {
  it.effect("C95, C139, C140: results and outputs are in the model's order, whatever ends first", () =>
    Effect.gen(function* () {
      const outcome = yield* inTime(
        Executor.run(
          [slow, fast],
          [
            { id: "c1", name: "slow" },
            { id: "c2", name: "fast", arguments: "{}" }
          ]
        )
      )
      assert.deepStrictEqual(
        outcome.results.map((final) => [final.index, final.call.id]),
        [
          [0, "c1"],
          [1, "c2"]
        ]
      )
      assert.deepStrictEqual(Executor.outputs(outcome), [
        { type: "function_call_output", call_id: "c1", output: "slow" },
        { type: "function_call_output", call_id: "c2", output: "fast" }
      ])
    })
  )

  it.effect("C139: finals come in the order in which the calls end", () =>
    Effect.gen(function* () {
      const events = yield* inTime(Stream.runCollect(Executor.stream(jobsOf(slow, fast))))
      assert.deepStrictEqual(
        events.map((event) => [event._tag, event.index]),
        [
          ["Final", 1],
          ["Final", 0]
        ]
      )
      assert.deepStrictEqual(texts(Executor.outcome(events)), ["slow", "fast"])
    })
  )

  it.effect("C80, C87: the arguments reach a tool as the model wrote them, and a missing text is an empty object", () =>
    Effect.gen(function* () {
      const text = `{"b":1,"a":2,"n":12345678901234567890}`
      const calls = [
        Executor.fromFunctionCall({ call_id: "c1", name: "echo", arguments: text }),
        { id: "c2", name: "echo" },
        { id: "c3", name: "echo", arguments: "" }
      ]
      assert.deepStrictEqual(texts(yield* Executor.run([echo], calls)), [text, "{}", "{}"])
    })
  )

  it.effect("C13, C146: a call of a tool that is not there fails, and the others run as usual", () =>
    Effect.gen(function* () {
      const outcome = yield* Executor.run(yield* Toolbox.make(echo), [
        { id: `a "b"`, name: "nope" },
        { id: "c2", name: "echo" }
      ])
      assert.deepStrictEqual(texts(outcome), [String.raw`Error: no tool for call "a \"b\""`, "{}"])
      assert.instanceOf(outcome.results.map(failureOf)[0], ExecutorError.NoTool)
    })
  )

  it.effect("C82, C83, C85: arguments that do not fit are refused by the harness before the tool runs", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const number = Tool.raw("number", {
        parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
        execute: (call) => Effect.sync(() => seen.push(call.arguments))
      })
      const outcome = yield* Executor.run(
        [number],
        [
          { id: "c1", name: "number", arguments: "[1]" },
          { id: "c2", name: "number", arguments: "{" },
          { id: "c3", name: "number", arguments: "{}" },
          { id: "c4", name: "number", arguments: `{"n":1}` }
        ]
      )
      const [list, broken, empty, fine] = texts(outcome)
      assert.strictEqual(list, "Error: invalid arguments: expected a JSON object")
      assert.match(broken ?? "", /^Error: invalid arguments: /)
      assert.match(empty ?? "", /^Error: invalid arguments: .*required/)
      assert.strictEqual(fine, "1")
      assert.deepStrictEqual(seen, [`{"n":1}`])
    })
  )

  it.effect("C137, C141: an empty batch has no events and no results", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Stream.runCollect(Executor.stream([])), [])
      assert.deepStrictEqual(yield* Executor.runJobs([]), { results: [], termination: "continue" })
      assert.deepStrictEqual(Executor.outputs(yield* Executor.run([echo], [])), [])
    })
  )

  it.effect("C95: parts stay parts in an output", () =>
    Effect.gen(function* () {
      const image = Tool.raw("image", {
        execute: () => Effect.succeed(ToolResult.parts([Part.text("a cat"), Part.image("https://example.com/cat.png")]))
      })
      const [output] = Executor.outputs(yield* Executor.run([image], [{ id: "c1", name: "image" }]))
      assert.deepStrictEqual(output?.output, [Part.text("a cat"), Part.image("https://example.com/cat.png")])
    })
  )

  it.effect("C99: details are for the harness, and not in what the model gets", () =>
    Effect.gen(function* () {
      const detailed = Tool.raw("detailed", {
        execute: () => Effect.succeed(ToolResult.text("done", { details: { secret: 1 }, terminate: true }))
      })
      const outcome = yield* Executor.run([detailed], [{ id: "c1", name: "detailed" }])
      assert.deepStrictEqual(outcome.results.map(Executor.rendered)[0]?.details, { secret: 1 })
      assert.deepStrictEqual(Executor.outputs(outcome), [
        { type: "function_call_output", call_id: "c1", output: "done" }
      ])
    })
  )

  it.effect("C68: an executor never closes a tool", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const closing = echo.pipe(Tool.closer(Effect.sync(() => void log.push("closed"))))
      yield* Effect.scoped(Effect.flatMap(Executor.start(jobsOf(closing)), (batch) => Stream.runDrain(batch.events)))
      yield* Executor.run([closing], [{ id: "c1", name: "echo" }])
      assert.deepStrictEqual(log, [])
    })
  )

  it.effect("C147: a call runs once, also when it fails", () =>
    Effect.gen(function* () {
      let runs = 0
      const flaky = Tool.raw("flaky", { execute: () => Effect.suspend(() => Effect.fail(`attempt ${++runs}`)) })
      assert.deepStrictEqual(texts(yield* Executor.runJobs(jobsOf(flaky.pipe(Tool.replay("safe"))))), [
        "Error: attempt 1"
      ])
      assert.strictEqual(runs, 1)
    })
  )
})

describe("Executor: errors", () => {
  it.effect("C103, C105, C107: each error has its text, with one prefix", () =>
    Effect.gen(function* () {
      const unencodable = Tool.raw("unencodable", { execute: () => Effect.succeed(1n) })
      const outcome = yield* Executor.runJobs(
        jobsOf<Tool.Tool<unknown>>(fails, panics, throws, interrupts, undefined, unencodable)
      )
      const [last, ...before] = texts(outcome).toReversed()
      assert.deepStrictEqual(before.toReversed(), [
        "Error: disk on fire",
        `Error: tool "panics" panicked: oh no`,
        `Error: tool "throws" panicked: two lines`,
        `Error: tool "interrupts" was interrupted`,
        `Error: no tool for call "call_4"`
      ])
      assert.match(last ?? "", /^Error: encode result: /)
    })
  )

  it.effect("C105: the original value stays with the error, for the harness", () =>
    Effect.gen(function* () {
      const [failure] = (yield* Executor.runJobs(jobsOf(panics))).results.map(failureOf)
      assert.instanceOf(failure, ToolError.ToolDefect)
      assert.deepStrictEqual([failure.tool, failure.value, failure.cause], ["panics", "oh no", "oh no"])
    })
  )

  it.effect("C101, C104: a failed call keeps its details and its wish to stop, beside a fresh text", () =>
    Effect.gen(function* () {
      const stops = Tool.raw("stops", {
        execute: () =>
          Effect.fail(new ToolError.ToolFailure({ message: "full", details: { free: 0 }, terminate: true }))
      })
      const outcome = yield* Executor.runJobs(jobsOf<Tool.Tool<unknown>>(stops, fails))
      assert.deepStrictEqual(outcome.results.map(Executor.rendered), [
        ToolResult.text("Error: full", { details: { free: 0 }, terminate: true }),
        ToolResult.text("Error: disk on fire")
      ])
    })
  )

  it.effect("C106: an error is a full result: one per call, in order", () =>
    Effect.gen(function* () {
      const outcome = yield* inTime(Executor.runJobs(jobsOf<Tool.Tool<unknown>>(fails, slow, panics)))
      assert.deepStrictEqual(
        outcome.results.map(({ index, call }) => [index, call.id]),
        [
          [0, "call_0"],
          [1, "call_1"],
          [2, "call_2"]
        ]
      )
    })
  )

  it.effect("C103: a failure of a declared type is shown as its JSON where it brings no text", () =>
    Effect.gen(function* () {
      const quota = Tool.make("quota", {
        failure: Schema.Struct({ left: Schema.Int }),
        execute: () => Effect.fail({ left: 0 })
      })
      assert.deepStrictEqual(texts(yield* Executor.runJobs(jobsOf(quota))), [`Error: {"left":0}`])
    })
  )

  it.effect("C152, C153: what one tool does to itself ends no other", () =>
    Effect.gen(function* () {
      const hard = Tool.raw("hard", {
        execute: () =>
          Effect.withFiber((fiber) => {
            fiber.interruptUnsafe()
            return Effect.never
          })
      })
      const children = Tool.raw("children", {
        execute: () => Effect.as(Effect.forkChild(Effect.die("in a child")), "done")
      })
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf<Tool.Tool<unknown>>(hard, fails, slow, panics, interrupts, children, slow))
      )
      assert.deepStrictEqual(texts(outcome), [
        `Error: tool "hard" was interrupted`,
        "Error: disk on fire",
        "slow",
        `Error: tool "panics" panicked: oh no`,
        `Error: tool "interrupts" was interrupted`,
        "done",
        "slow"
      ])
      assert.instanceOf(outcome.results.map(failureOf)[0], ExecutorError.Interrupted)
    })
  )

  it.effect("C100, C154: the outcome of a batch from its wishes to stop", () =>
    Effect.gen(function* () {
      const stop = Tool.raw("stop", { execute: () => Effect.succeed(ToolResult.text("", { terminate: true })) })
      const refuse = Tool.raw("refuse", {
        execute: () => Effect.fail(new ToolError.ToolFailure({ message: "no", terminate: true }))
      })
      const ends = (...tools: ReadonlyArray<Tool.Tool<unknown> | undefined>) =>
        Effect.map(Executor.runJobs(jobsOf(...tools)), (outcome) => outcome.termination)
      assert.deepStrictEqual(
        [
          yield* ends(stop, stop),
          yield* ends(stop, echo),
          yield* ends(fails, stop),
          yield* ends(refuse, stop),
          yield* ends(stop, undefined),
          yield* ends(echo, fails),
          yield* ends()
        ],
        ["terminate", "partial", "partial", "terminate", "partial", "continue", "continue"]
      )
    })
  )
})

describe("Executor: settings and types", () => {
  it.effect("C130, C131: settings come from the layer, and a batch's own options go first", () =>
    Effect.gen(function* () {
      let now = 0
      let most = 0
      const counted = Tool.raw("counted", {
        execute: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              most = Math.max(most, ++now)
            }),
            () => Effect.sleep("1 second"),
            () => Effect.sync(() => now--)
          )
      })
      const mostOf = (options?: Executor.Options, layer: Layer.Layer<never> = Layer.empty) =>
        Effect.suspend(() => {
          most = 0
          const jobs = jobsOf(...Array.from({ length: 20 }, () => counted))
          return Effect.map(inTime(Effect.provide(Executor.runJobs(jobs, options), layer)), () => most)
        })
      assert.strictEqual(yield* mostOf(), 8)
      assert.strictEqual(yield* mostOf({ maxParallel: 0 }), 8)
      assert.strictEqual(yield* mostOf({ maxParallel: 3 }), 3)
      assert.strictEqual(yield* mostOf({ sequential: true }), 1)
      assert.strictEqual(yield* mostOf({ maxParallel: 30 }), 20)
      assert.strictEqual(yield* mostOf(undefined, Executor.layer({ maxParallel: 2 })), 2)
      assert.strictEqual(yield* mostOf({ maxParallel: 5 }, Executor.layer({ maxParallel: 2 })), 5)
    })
  )

  it.effect("a batch of different tools fails with what they fail with, and needs what they need", () =>
    Effect.gen(function* () {
      class Disk extends Context.Service<Disk, string>()("test/Disk") {}
      class Clerk extends Context.Service<Clerk, string>()("test/Clerk") {}
      class Full extends Schema.TaggedError<Full>()("Full", { message: Schema.String }) {}
      class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}
      const save = Tool.raw("save", { execute: () => Effect.andThen(Disk, new Full({ message: "full" })) })
      const name = Tool.make("name", { execute: () => ToolCall.current.pipe(Effect.andThen(Clerk)) })
      const outcome = Executor.run([save, name], [{ id: "c1", name: "save" }], {
        onStart: () =>
          Effect.flatMap(ToolCall.current, ({ id }) => (id === "c0" ? new Refused({ message: id }) : Effect.void))
      })
      const typed: Effect.Effect<
        Executor.Outcome<
          | Full
          | Refused
          | ToolError.ToolError
          | ToolError.ToolDefect
          | ToolError.ToolFailure
          | ExecutorError.ExecutorError
        >,
        never,
        Disk | Clerk
      > = outcome
      const needsNothing = (effect: Effect.Effect<unknown>) => effect
      // @ts-expect-error the tools need services
      needsNothing(outcome)
      const [final] = (yield* typed.pipe(Effect.provideService(Disk, "d"), Effect.provideService(Clerk, "c"))).results
      assert.instanceOf(final && Result.getFailure(final.result).pipe(Option.getOrUndefined), Full)

      const jobs = [
        { tool: save, call: ToolCall.make({ id: "c1", tool: "save" }) },
        { tool: echo, call: ToolCall.make({ id: "c2", tool: "echo" }) }
      ]
      const stream: Stream.Stream<
        Executor.Event<Executor.Failure<typeof save | typeof echo>>,
        never,
        Disk
      > = Executor.stream(jobs)
      assert.strictEqual((yield* Stream.runCollect(Stream.provideService(stream, Disk, "d"))).length, 2)
    })
  )
})

describe("Executor: running a call again", () => {
  const call = ToolCall.make({ id: "c1", tool: "t", arguments: `{"dry":true}` })
  const withKey = ToolCall.make({ id: "c1", tool: "t", idempotencyKey: "k1" })
  const asked = <E, R, Args, A>(tool: Tool.Tool<E, R, Args, A>, about: ToolCall.Call) =>
    Effect.match(Executor.mayReplay(tool, about), {
      onSuccess: (answer) => (answer._tag === "Keyed" ? answer.idempotencyKey : answer._tag),
      onFailure: (error) => error._tag
    })
  const untouchable = Tool.raw("t", { execute: () => Effect.die("ran") })

  it.effect("C52, C55, C159: safe runs again, keyed only with the first key, unknown never", () =>
    Effect.gen(function* () {
      const safe = untouchable.pipe(Tool.replay("safe"))
      const keyed = untouchable.pipe(Tool.replay("keyed"))
      const perCall = untouchable.pipe(
        Tool.replay((args) =>
          Effect.succeed(Schema.is(Schema.Struct({ dry: Schema.Boolean }))(args) ? "safe" : "keyed")
        )
      )
      assert.deepStrictEqual(
        [
          yield* asked(safe, call),
          yield* asked(safe, withKey),
          yield* asked(keyed, withKey),
          yield* asked(keyed, call),
          yield* asked(keyed, { ...call, idempotencyKey: "" }),
          yield* asked(untouchable, withKey),
          yield* asked(perCall, call),
          yield* asked(perCall, withKey)
        ],
        ["Safe", "Safe", "k1", "OutcomeUnknown", "OutcomeUnknown", "OutcomeUnknown", "Safe", "k1"]
      )
    })
  )

  it.effect("C56, C159: the model is told that the outcome is unknown, whatever the annotations say", () =>
    Effect.gen(function* () {
      const idempotent = untouchable.pipe(Tool.annotate({ readOnly: true, idempotent: true }))
      const error = yield* Effect.flip(Executor.mayReplay(idempotent, withKey))
      assert.include(error.message, "the outcome is unknown")
      assert.include(error.message, `tool "t"`)
    })
  )
})
