import { assert, describe, it } from "@effect/vitest"
import { type Cause, Deferred, Effect, Fiber, Layer, Option, PlatformError, Queue, Schema, Terminal } from "effect"
import * as Elicitor from "@agenttool/core/Elicitor"
import * as ElicitorTerminal from "@agenttool/core/ElicitorTerminal"
import * as Form from "@agenttool/core/Form"
import * as Question from "@agenttool/core/Question"

const named = new Set(["return", "down", "up", "space", "backspace", "tab"])

/** A key by its name, or a character. `^C` ends the input, as a real terminal does. */
const key = (name: string): Terminal.UserInput => ({
  input: named.has(name) ? (name === "space" ? Option.some(" ") : Option.none()) : Option.some(name),
  key: { name, ctrl: false, meta: false, shift: false }
})
const type = (text: string): ReadonlyArray<string> => [...text, "return"]

/** A terminal that has these keys typed at it, and what it showed. */
const terminalOf = (keys: ReadonlyArray<string>, display?: Terminal.Terminal["display"]) =>
  Effect.gen(function* () {
    const shown: Array<string> = []
    const input = yield* Queue.make<Terminal.UserInput, Cause.Done>()
    for (const name of keys) {
      if (name === "^C") yield* Queue.end(input)
      else yield* Queue.offer(input, key(name))
    }
    const terminal = Terminal.make({
      columns: Effect.succeed(80),
      rows: Effect.succeed(24),
      size: Effect.die("unused"),
      readInput: Effect.succeed(input),
      readLine: Effect.die("unused"),
      display: display ?? ((text) => Effect.sync(() => void shown.push(text)))
    })
    return {
      input,
      screen: () => shown.join(""),
      layer: Layer.provide(ElicitorTerminal.layer, Layer.succeed(Terminal.Terminal, terminal))
    }
  })

const asking = <A, E>(effect: Effect.Effect<A, E>, ...keys: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const terminal = yield* terminalOf(keys)
    const result = yield* Effect.provide(effect, terminal.layer)
    return [result, terminal.screen()] as const
  })

describe("ElicitorTerminal", () => {
  it.effect("C120: a confirmation is a yes or a no", () =>
    Effect.gen(function* () {
      const asked = Elicitor.ask({ message: "Delete 3 files?" })
      const [yes, screen] = yield* asking(asked, "y")
      assert.deepStrictEqual(yes, Question.accept(undefined))
      assert.include(screen, "Delete 3 files?")
      assert.deepStrictEqual((yield* asking(asked, "n"))[0], { action: "decline" })
      assert.deepStrictEqual((yield* asking(asked, "return"))[0], { action: "decline" })
    })
  )

  it.effect("C120: a url question shows the page and asks for consent", () =>
    Effect.gen(function* () {
      const [answer, screen] = yield* asking(Elicitor.ask({ message: "Log in", url: "https://example.com/login" }), "y")
      assert.deepStrictEqual(answer, Question.accept(undefined))
      assert.include(screen, "Log in\nhttps://example.com/login\n")
    })
  )

  it.effect("C121: Ctrl-C and the end of input are cancel, at any point; a no before sending is decline", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({ name: Schema.String, sure: Schema.Boolean })
      const asked = Elicitor.ask({ message: "Who?", schema })
      assert.deepStrictEqual((yield* asking(asked, "^C"))[0], { action: "cancel" })
      assert.deepStrictEqual((yield* asking(asked, "A", "d", "^C"))[0], { action: "cancel" })
      assert.deepStrictEqual((yield* asking(asked, ...type("Ada"), "y", "^C"))[0], { action: "cancel" })
      assert.deepStrictEqual((yield* asking(asked, ...type("Ada"), "y", "n"))[0], { action: "decline" })
      assert.deepStrictEqual(
        (yield* asking(asked, ...type("Ada"), "y", "return"))[0],
        Question.accept({ name: "Ada", sure: true })
      )
      assert.deepStrictEqual((yield* asking(Elicitor.ask({ message: "Sure?" }), "^C"))[0], { action: "cancel" })
    })
  )

  it.effect("C120: a form is asked field by field, and its answer is typed", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({
        name: Schema.String.annotate({ title: "Your name", description: "as in your passport" }),
        age: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 130 })),
        size: Schema.Literals(["small", "large"]),
        prio: Form.choice([
          { value: "low", title: "Some day" },
          { value: "high", title: "Now" }
        ]),
        days: Schema.Array(Schema.Literals(["mon", "tue", "wed"])).check(Schema.isMinLength(1)),
        sure: Schema.Boolean,
        from: Schema.Date.annotate({ format: "date" })
      })
      const [answer, screen] = yield* asking(
        Elicitor.ask({ message: "Some questions", schema }),
        ...type("Ada"),
        ...type("36"),
        ...["down", "return"], // large
        ...["down", "return"], // Now
        "return", // none chosen: refused, and asked again
        ...["down", "down", "space", "down", "down", "space", "return"], // mon and wed, below the two bulk entries
        "y",
        ...type("2026-12-01"),
        "return"
      )
      assert.deepStrictEqual(
        answer,
        Question.accept({
          name: "Ada",
          age: 36,
          size: "large",
          prio: "high",
          days: ["mon", "wed"],
          sure: true,
          from: new Date("2026-12-01")
        })
      )
      assert.include(screen, "Some questions\n")
      assert.include(screen, "Your name (as in your passport)")
      assert.include(screen, "Some day")
      assert.include(screen, "At least 1 are required")
    })
  )

  it.effect("C126: what does not fit a field is said, and can be written again", () =>
    Effect.gen(function* () {
      const erase = (count: number) => Array.from({ length: count }, () => "backspace")
      const schema = Schema.Struct({
        mail: Schema.String.annotate({ format: "email" }),
        count: Schema.Int.check(Schema.isLessThanOrEqualTo(9))
      })
      const [answer, screen] = yield* asking(
        Elicitor.ask({ message: "m", schema }),
        ...type("nobody"),
        ...type("@example.com"),
        "return", // empty, and needed
        ...type("x"),
        ...erase(1),
        ...type("12"),
        ...erase(1),
        "return",
        "return"
      )
      assert.deepStrictEqual(answer, Question.accept({ mail: "nobody@example.com", count: 1 }))
      assert.include(screen, 'must match format "email"')
      assert.include(screen, "an answer is needed")
      assert.include(screen, "must be integer")
      assert.include(screen, "must be <= 9")
    })
  )

  it.effect("C120: an optional field may be left out, and a default is taken as it stands", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({
        note: Schema.optionalKey(Schema.String),
        count: Schema.optionalKey(Schema.Int),
        size: Schema.optionalKey(Schema.Literals(["s", "l"])),
        sure: Schema.optionalKey(Schema.Boolean),
        days: Schema.optionalKey(Schema.Array(Schema.Literals(["mon", "tue"])).check(Schema.isMinLength(1)))
      })
      const asked = Elicitor.ask({ message: "m", schema })
      const [left, screen] = yield* asking(
        asked,
        ...["return", "return"],
        ...["up", "return"], // "leave out" is the last choice
        ...["up", "return"],
        ...["return", "return"]
      )
      assert.deepStrictEqual(left, Question.accept({}))
      assert.include(screen, "note [optional]")
      const [given] = yield* asking(
        asked,
        ...type("n"),
        ...type("2"),
        "return",
        "return",
        "down",
        "down",
        "space",
        "return",
        "return"
      )
      assert.deepStrictEqual(given, Question.accept({ note: "n", count: 2, size: "s", sure: true, days: ["mon"] }))
      const defaults = Schema.Struct({
        name: Schema.String.annotate({ default: "Ada" }),
        count: Schema.Int.annotate({ default: 3 }),
        size: Schema.Literals(["s", "l"]).annotate({ default: "l" }),
        sure: Schema.Boolean.annotate({ default: true }),
        days: Schema.Array(Schema.Literals(["mon", "tue"])).annotate({ default: ["tue"] })
      })
      const [taken] = yield* asking(
        Elicitor.ask({ message: "m", schema: defaults }),
        ...Array.from({ length: 6 }, () => "return")
      )
      assert.deepStrictEqual(taken, Question.accept({ name: "Ada", count: 3, size: "l", sure: true, days: ["tue"] }))
    })
  )

  it.effect("C120: a hand-written form is asked as well, with the names beside its enum", () =>
    Effect.gen(function* () {
      const schema = {
        type: "object",
        properties: {
          prio: { type: "string", enum: ["low", "high"], enumNames: ["Some day", "Now"] },
          empty: { type: "string" }
        },
        required: ["prio", "empty"]
      }
      const [answer, screen] = yield* asking(
        Elicitor.askRaw({ message: "m", schema }),
        "down",
        "return",
        "return",
        "return"
      )
      assert.deepStrictEqual(answer, Question.accept({ prio: "high", empty: "" }))
      assert.include(screen, "Some day")
    })
  )

  it.effect("C127: a schema that is no form fails the asking, and nothing is shown", () =>
    Effect.gen(function* () {
      const nested = { type: "object", properties: { a: { type: "object" } } }
      const [error, screen] = yield* asking(Effect.flip(Elicitor.askRaw({ message: "m", schema: nested })))
      assert.strictEqual(error.message, "elicitation schema: properties.a: an object inside a form is not allowed")
      assert.strictEqual(screen, "")
    })
  )

  it.effect("C123: a terminal that cannot show anything fails the asking", () =>
    Effect.gen(function* () {
      const broken = new PlatformError.PlatformError(
        new PlatformError.SystemError({ _tag: "Unknown", module: "Terminal", method: "display", description: "gone" })
      )
      const { layer } = yield* terminalOf(["y"], () => Effect.fail(broken))
      const error = yield* Effect.flip(
        Effect.provide(Elicitor.ask({ message: "m", url: "https://example.com" }), layer)
      )
      assert.strictEqual(error._tag, "AskFailed")
      assert.match(error.message, /^terminal: /)
    })
  )

  it.effect("what a tool wrote cannot steer the terminal", () =>
    Effect.gen(function* () {
      const message = "Safe?\u001b[2J\u001b]0;title\u0007 \u202egnp.exe\nsecond line"
      const [, screen] = yield* asking(Elicitor.ask({ message, url: "https://example.com/\u001b[31m" }), "y")
      assert.include(screen, "Safe? [2J ]0;title  gnp.exe\nsecond line\nhttps://example.com/ [31m\n")
    })
  )

  it.effect("one question is asked at a time", () =>
    Effect.gen(function* () {
      const { input, layer, screen } = yield* terminalOf([])
      yield* Effect.gen(function* () {
        const first = yield* Effect.forkChild(Elicitor.ask({ message: "first?" }), { startImmediately: true })
        const second = yield* Effect.forkChild(Elicitor.ask({ message: "second?" }), { startImmediately: true })
        yield* Effect.yieldNow
        assert.include(screen(), "first?")
        assert.notInclude(screen(), "second?")
        yield* Queue.offer(input, key("y"))
        assert.deepStrictEqual(yield* Fiber.join(first), Question.accept(undefined))
        yield* Queue.offer(input, key("n"))
        assert.deepStrictEqual(yield* Fiber.join(second), { action: "decline" })
        assert.include(screen(), "second?")
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("a question that is no longer wanted makes room for the next", () =>
    Effect.gen(function* () {
      const { input, layer } = yield* terminalOf([])
      yield* Effect.gen(function* () {
        const started = yield* Deferred.make<void>()
        const abandoned = yield* Effect.forkChild(
          Effect.andThen(Deferred.succeed(started, undefined), Elicitor.ask({ message: "first?" })),
          { startImmediately: true }
        )
        yield* Deferred.await(started)
        yield* Fiber.interrupt(abandoned)
        yield* Queue.offer(input, key("y"))
        assert.deepStrictEqual(yield* Elicitor.ask({ message: "second?" }), Question.accept(undefined))
      }).pipe(Effect.provide(layer))
    })
  )
})
