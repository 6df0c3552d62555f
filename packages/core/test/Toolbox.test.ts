import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Option, Result, Scope } from "effect"
import * as Tool from "@agenttool/core/Tool"
import * as Toolbox from "@agenttool/core/Toolbox"
import * as ToolError from "@agenttool/core/ToolError"

const plain = Tool.raw("plain", { description: "says nothing", execute: () => Effect.succeed("") })
const other = Tool.raw("other", { execute: () => Effect.succeed("") })
const nameless = Tool.raw("", { execute: () => Effect.succeed("") })
const untouchable = Tool.raw("untouchable", { execute: () => Effect.die("ran") })

const textOf = (tools: ReadonlyArray<Tool.Any>): string =>
  Result.match(Toolbox.check(tools), { onFailure: (error) => error.message, onSuccess: () => "fine" })

describe("Toolbox", () => {
  it("C12: the check reports the first fault of a set", () => {
    assert.strictEqual(textOf([plain, plain]), `tool "plain": duplicate name`)
    assert.strictEqual(textOf([plain, nameless]), "tool[1]: empty name")
    assert.strictEqual(textOf([nameless, plain, plain]), "tool[0]: empty name")
    assert.strictEqual(textOf([plain, plain, nameless]), `tool "plain": duplicate name`)
    assert.strictEqual(textOf([plain, other]), "fine")
    assert.strictEqual(textOf([]), "fine")
  })

  it.effect("C12: a set with a fault is not made, and a name is quoted as in JSON", () =>
    Effect.gen(function* () {
      const odd = Tool.raw(`a "b"\\c`, { execute: () => Effect.succeed("") })
      const error = yield* Effect.flip(Toolbox.make(plain, odd, odd))
      assert.instanceOf(error, Toolbox.ToolboxError)
      assert.deepStrictEqual([error.fault, error.index, error.name], ["duplicate name", 2, odd.name])
      assert.strictEqual(error.message, String.raw`tool "a \"b\"\\c": duplicate name`)
    })
  )

  it.effect("C13: a look-up gives the first tool of a name, or none", () =>
    Effect.gen(function* () {
      const again = Tool.raw("plain", { execute: () => Effect.succeed("") })
      assert.isTrue(Option.contains(plain)(Toolbox.get([plain, again], "plain")))
      assert.isTrue(Option.isNone(Toolbox.get([plain, again], "missing")))
      const toolbox = yield* Toolbox.make(plain, other)
      assert.strictEqual(Option.getOrThrow(Toolbox.get(toolbox, "other")), other)
      assert.isTrue(Option.isNone(toolbox.pipe(Toolbox.get("missing"))))
    })
  )

  it.effect("C14: the definitions are in the set's order, and an empty set has none", () =>
    Effect.gen(function* () {
      const toolbox = yield* Toolbox.make(other, plain)
      assert.deepStrictEqual(Toolbox.definitions(toolbox), [Tool.definition(other), Tool.definition(plain)])
      assert.deepStrictEqual(Toolbox.definitions(yield* Toolbox.make()), [])
    })
  )

  const closing = (log: Array<string>, name: string, then: Effect.Effect<void, unknown> = Effect.void) =>
    Tool.raw(name, { execute: () => Effect.succeed("") }).pipe(
      Tool.closer(
        Effect.andThen(
          Effect.sync(() => void log.push(name)),
          then
        )
      )
    )

  it.effect("C15: closing closes the closers in order and skips the others", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* Toolbox.close([closing(log, "b"), plain, closing(log, "a")])
      assert.deepStrictEqual(log, ["b", "a"])
    })
  )

  it.effect("C15, C71: a failure stops nothing, and all failures are reported together", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tools = [
        closing(log, "a", Effect.fail("boom")),
        untouchable,
        closing(log, "b"),
        closing(log, "c", Effect.fail(new ToolError.ToolFailure({ message: "no such shell" }))),
        closing(log, "d", Effect.die(new Error("two\nlines"))),
        closing(log, "e", Effect.interrupt)
      ]
      const error = yield* Effect.flip(Toolbox.close(tools))
      assert.deepStrictEqual(log, ["a", "b", "c", "d", "e"])
      assert.instanceOf(error, Toolbox.CloseError)
      assert.deepStrictEqual(
        error.failures.map((failure) => failure.tool),
        ["a", "c", "d", "e"]
      )
      assert.strictEqual(
        error.message,
        [
          `agenttool: close "a": boom`,
          `agenttool: close "c": no such shell`,
          `agenttool: close "d": two lines`,
          `agenttool: close "e": interrupted`
        ].join("\n")
      )
    })
  )

  it.effect("C66: what a tool keeps between calls is freed by closing it", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const shell = Tool.raw("shell", {
        execute: (call) => Effect.sync(() => lines.push(call.arguments))
      }).pipe(Tool.closer(Effect.sync(() => lines.splice(0))))
      yield* Tool.run(shell, {})
      assert.strictEqual((yield* Tool.run(shell, {})).output, "2")
      yield* Toolbox.close([shell])
      assert.deepStrictEqual(lines, [])
    })
  )

  it.effect("C67: closing a wrapper closes what it wraps, once", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const wrapper = closing(log, "shell").pipe(
        Tool.wrap((execute) => execute),
        Tool.wrap((execute) => execute)
      )
      yield* Toolbox.close([wrapper, plain.pipe(Tool.wrap((execute) => execute))])
      assert.deepStrictEqual(log, ["shell"])
    })
  )

  it.effect("C15, C68: a scoped set is closed when its scope is, not before", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const scope = yield* Scope.make()
      const toolbox = yield* Scope.provide(Toolbox.scoped(closing(log, "a"), plain, closing(log, "b")), scope)
      yield* Tool.run(plain, {})
      assert.strictEqual(toolbox.tools.length, 3)
      assert.deepStrictEqual(log, [])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(log, ["a", "b"])
    })
  )

  it.effect("C71: what could not be closed is the scope's defect, with every failure", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const exit = yield* Toolbox.scoped(
        closing(log, "a", Effect.fail("boom")),
        closing(log, "b"),
        closing(log, "c", Effect.fail("bang"))
      ).pipe(Effect.scoped, Effect.exit)
      assert.deepStrictEqual(log, ["a", "b", "c"])
      assert.isTrue(Exit.isFailure(exit))
      const died = Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isDieReason) : undefined
      assert.instanceOf(died?.defect, Toolbox.CloseError)
      assert.strictEqual(died.defect.message, `agenttool: close "a": boom\nagenttool: close "c": bang`)
    })
  )

  it.effect("C12: a scoped set with a fault is not made, and nothing is closed", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tool = closing(log, "a")
      const error = yield* Effect.scoped(Effect.flip(Toolbox.scoped(tool, tool)))
      assert.strictEqual(error.message, `tool "a": duplicate name`)
      assert.deepStrictEqual(log, [])
    })
  )
})
