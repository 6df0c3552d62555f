import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Option, Schema } from "effect"
import { Tool, ToolCall, ToolError, ToolResult } from "@agenttool/core"

const textOf = (exit: Exit.Exit<ToolResult.ToolResult, unknown>): string =>
  Exit.match(exit, {
    onSuccess: (result) => ToolResult.textOf(result.output),
    onFailure: (cause) => (Cause.hasInterrupts(cause) ? "interrupted" : ToolError.messageOf(Cause.squash(cause)))
  })

const thrower = (what: unknown): Effect.Effect<string> => {
  throw what
}

describe("Tool.run", () => {
  it.effect("C90: a tool finds its own call, also after it has run another tool", () =>
    Effect.gen(function* () {
      const inner = Tool.raw("inner", {
        execute: () => Effect.map(Effect.andThen(Effect.yieldNow, ToolCall.current), (call) => call.id)
      })
      const outer = Tool.raw("outer", {
        execute: () =>
          Effect.gen(function* () {
            const before = (yield* ToolCall.current).id
            const between = yield* Tool.run(inner, {}, { id: "inner_1" })
            const after = yield* ToolCall.current
            return [before, ToolResult.textOf(between.output), after.id, after.tool].join(" ")
          })
      })
      const result = yield* Tool.run(outer, {}, { id: "outer_1" })
      assert.strictEqual(result.output, "outer_1 inner_1 outer_1 outer")
      assert.deepStrictEqual(yield* ToolCall.option, Option.none())
    })
  )

  it.effect("C105: however a tool breaks, its defect has the tool's name", () =>
    Effect.gen(function* () {
      const later = Effect.andThen(Effect.yieldNow, Effect.die("oh no"))
      const closing = Effect.acquireRelease(Effect.yieldNow, () => Effect.die("oh no"))
      for (const body of [() => thrower("oh no"), () => Effect.die("oh no"), () => later, () => closing]) {
        for (const tool of [Tool.make("t", { execute: body }), Tool.raw("t", { execute: body })]) {
          const exit = yield* Effect.exit(Tool.run(tool, {}))
          assert.strictEqual(textOf(exit), 'tool "t" panicked: oh no')
          assert.isTrue(Exit.hasDies(exit))
        }
      }
      const lines = yield* Effect.exit(Tool.run(Tool.make("t", { execute: () => thrower(new Error("a\n  b")) }), {}))
      assert.strictEqual(textOf(lines), 'tool "t" panicked: a b')
    })
  )

  it.effect("C105: a tool that runs a broken tool does not take the blame", () =>
    Effect.gen(function* () {
      const broken = Tool.raw("broken", { execute: () => Effect.die("oh no") })
      const outer = Tool.raw("outer", { execute: () => Effect.andThen(Effect.yieldNow, Tool.run(broken, {})) })
      assert.strictEqual(textOf(yield* Effect.exit(Tool.run(outer, {}))), 'tool "broken" panicked: oh no')
    })
  )

  it.effect("what is beside a defect stays beside it", () =>
    Effect.gen(function* () {
      const both = Effect.failCause(Cause.combine(Cause.fail("no"), Cause.die("oh no")))
      for (const body of [both, Effect.andThen(Effect.yieldNow, both)]) {
        const exit = yield* Effect.exit(Tool.run(Tool.raw("t", { execute: () => body }), {}))
        const cause = Option.getOrThrow(Exit.getCause(exit))
        assert.deepStrictEqual(Cause.findErrorOption(cause), Option.some("no"))
        assert.deepStrictEqual(
          cause.reasons.filter(Cause.isDieReason).map(({ defect }) => ToolError.messageOf(defect)),
          ['tool "t" panicked: oh no']
        )
      }
    })
  )

  it.effect("failures stay failures, interruption stays interruption", () =>
    Effect.gen(function* () {
      const atOnce = Tool.raw("t", { execute: () => Effect.fail("no") })
      const later = Tool.raw("t", { execute: () => Effect.andThen(Effect.yieldNow, Effect.fail("no")) })
      assert.strictEqual(yield* Effect.flip(Tool.run(atOnce, {})), "no")
      assert.strictEqual(yield* Effect.flip(Tool.run(later, {})), "no")
      const fiber = yield* Effect.forkChild(Tool.run(Tool.raw("t", { execute: () => Effect.never }), {}))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    })
  )

  it.effect("what a tool acquires is released when its call ends, however it ends", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const holding = (name: string, end: Effect.Effect<unknown, string>) =>
        Tool.raw(name, {
          execute: () =>
            Effect.acquireRelease(
              Effect.sync(() => log.push(`open ${name}`)),
              () =>
                Effect.flatMap(ToolCall.option, (call) =>
                  Effect.sync(() => log.push(`close ${Option.getOrThrow(call).tool}`))
                )
            ).pipe(Effect.andThen(end))
        })
      yield* Tool.run(holding("a", Effect.void), {})
      yield* Effect.ignore(Tool.run(holding("b", Effect.fail("no")), {}))
      const fiber = yield* Effect.forkChild(Tool.run(holding("c", Deferred.await(gate)), {}))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(log, ["open a", "close a", "open b", "close b", "open c", "close c"])
    })
  )

  it.effect("C84: arguments that do not fit are refused before the function runs", () =>
    Effect.gen(function* () {
      const ran: Array<number> = []
      const tool = Tool.make("t", {
        parameters: Schema.Struct({ a: Schema.Int }),
        execute: ({ a }) => Effect.sync(() => void ran.push(a))
      })
      const run = (text: string) =>
        Effect.exit(Tool.runCall(tool, ToolCall.make({ id: "c", tool: "t", arguments: text })))
      assert.strictEqual(textOf(yield* run('{"a":"x"}')), 'invalid arguments: a: expected integer, got "x"')
      assert.match(textOf(yield* run("{")), /^invalid arguments: not valid JSON: /)
      assert.deepStrictEqual(ran, [])
      yield* run('{"a":1}')
      assert.deepStrictEqual(ran, [1])
    })
  )

  it.effect("C190: a number at fault is shown as the model wrote it", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", { parameters: Schema.Struct({ a: Schema.Int }), execute: () => Effect.void })
      const call = ToolCall.make({ id: "c", tool: "t", arguments: '{"a":1.50}' })
      assert.strictEqual(
        textOf(yield* Effect.exit(Tool.runCall(tool, call))),
        "invalid arguments: a: expected integer, got 1.50"
      )
    })
  )

  it.effect("C18: with a success schema the value is encoded, at once or later", () =>
    Effect.gen(function* () {
      const Dated = Schema.Struct({ at: Schema.DateFromString })
      const ready = Tool.make("t", { success: Dated, execute: () => Effect.succeed({ at: new Date(0) }) })
      const later = Tool.make("t", { success: Dated, execute: () => Effect.as(Effect.yieldNow, { at: new Date(0) }) })
      const wrong = Tool.make("t", {
        success: Schema.Struct({ n: Schema.Int }),
        execute: () => Effect.succeed({ n: 1.5 })
      })
      for (const tool of [ready, later]) {
        const result = yield* Tool.run(tool, {})
        assert.strictEqual(result.output, '{"at":"1970-01-01T00:00:00.000Z"}')
        assert.strictEqual(result.value?.at.getTime(), 0)
      }
      assert.match(textOf(yield* Effect.exit(Tool.run(wrong, {}))), /^encode result: n: \S/)
    })
  )
})
