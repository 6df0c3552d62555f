import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as Elicitor from "@agenttool/core/Elicitor"
import * as Form from "@agenttool/core/Form"
import * as Question from "@agenttool/core/Question"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"

const deploy = Effect.fn("deploy")(function* (build: string) {
  const answer = yield* Elicitor.ask({
    message: `Deploy ${build} where?`,
    schema: Schema.Struct({ environment: Schema.Literals(["staging", "production"]) })
  })
  if (answer.action !== "accept") return "Nothing was deployed."
  const environment: "staging" | "production" = answer.content.environment
  return `Deployed to ${environment}.`
})

/** Runs under scripted answers; gives the outcome and what was asked. */
const scripted = <A, E>(
  effect: Effect.Effect<A, E>,
  ...answers: ReadonlyArray<Question.Answer>
): Effect.Effect<readonly [A, ReadonlyArray<Question.Question>], E> =>
  Effect.gen(function* () {
    const result = yield* effect
    const { questions } = yield* Elicitor.Transcript
    return [result, yield* questions] as const
  }).pipe(Effect.provide(Elicitor.layerScripted(answers)))

const failure = (effect: Effect.Effect<unknown, Question.AskFailed>, ...answers: ReadonlyArray<Question.Answer>) =>
  Effect.map(Effect.flip(scripted(effect, ...answers)), (error) => {
    assert.strictEqual(error._tag, "AskFailed")
    return error.message
  })

describe("Elicitor", () => {
  it.effect("C119, C122: with nobody to ask, every question is answered cancel", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* deploy("b1"), "Nothing was deployed.")
      assert.deepStrictEqual(yield* Elicitor.ask({ message: "Sure?" }), { action: "cancel" })
      assert.deepStrictEqual(yield* Elicitor.askRaw({ message: "m", url: "https://example.com" }), { action: "cancel" })
    })
  )

  it.effect("C125: no elicitor removes one, and an empty context has none", () =>
    Effect.gen(function* () {
      const answering = Elicitor.layer({ ask: () => Effect.succeed(Question.decline) })
      const asked = Elicitor.ask({ message: "Sure?" })
      assert.deepStrictEqual(yield* Effect.provide(asked, answering), { action: "decline" })
      assert.deepStrictEqual(yield* asked.pipe(Effect.provide(Elicitor.layerNone), Effect.provide(answering)), {
        action: "cancel"
      })
      assert.strictEqual(Context.get(Context.empty(), Elicitor.Elicitor), Elicitor.none)
    })
  )

  it.effect("C93, C124: the elicitor runs under the tool's context, with the call in it", () =>
    Effect.gen(function* () {
      class Host extends Context.Service<Host, string>()("test/Host") {}
      const elicitor = Elicitor.layer({
        ask: () =>
          Effect.gen(function* () {
            const call = Option.map(yield* ToolCall.option, ({ id, tool }) => `${tool} ${id}`)
            const host = yield* Effect.serviceOption(Host)
            return Question.accept({
              by: Option.getOrElse(call, () => "nobody"),
              host: Option.getOrElse(host, () => "")
            })
          })
      })
      const asks = Tool.make("asks", {
        execute: () => Effect.map(Elicitor.ask({ message: "Who?" }), (answer) => JSON.stringify(answer))
      })
      const call = ToolCall.make({ id: "call_1", tool: "asks" })
      const result = yield* Tool.runCall(asks, call).pipe(Effect.provide(elicitor), Effect.provideService(Host, "here"))
      assert.strictEqual(result.output, '{"action":"accept","content":{"by":"asks call_1","host":"here"}}')
      assert.deepStrictEqual(
        yield* Effect.provide(Elicitor.ask({ message: "Who?" }), elicitor),
        Question.accept({ by: "nobody", host: "" })
      )
    })
  )

  it.effect("C129: the tool waits where it asked, with all it holds, and goes on from there", () =>
    Effect.gen(function* () {
      const events: Array<string> = []
      const answered = yield* Deferred.make<Question.Answer>()
      const elicitor = Elicitor.layer({ ask: () => Deferred.await(answered) })
      const asks = Tool.make("asks", {
        execute: () =>
          Effect.scoped(
            Effect.gen(function* () {
              yield* Effect.acquireRelease(
                Effect.sync(() => void events.push("acquired")),
                () => Effect.sync(() => void events.push("released"))
              )
              const yes = yield* Elicitor.confirm("Sure?")
              events.push(`confirmed ${yes}`)
            })
          )
      })
      const running = yield* Effect.forkChild(Effect.provide(Tool.run(asks, {}), elicitor), { startImmediately: true })
      yield* TestClock.adjust("30 days")
      assert.deepStrictEqual(events, ["acquired"])
      yield* Deferred.succeed(answered, Question.accept({ confirm: true }))
      yield* Fiber.join(running)
      assert.deepStrictEqual(events, ["acquired", "confirmed true", "released"])

      // Stopped while it waits, it lets go of what it holds.
      const never = Elicitor.layer({ ask: () => Effect.never })
      const stopped = yield* Effect.forkChild(Effect.provide(Tool.run(asks, {}), never), { startImmediately: true })
      yield* Fiber.interrupt(stopped)
      assert.deepStrictEqual(events.slice(3), ["acquired", "released"])
    })
  )

  it.effect("C120: a typed question is a form with the schema of its type", () =>
    Effect.gen(function* () {
      const [result, questions] = yield* scripted(deploy("b1"), Question.accept({ environment: "production" }))
      assert.strictEqual(result, "Deployed to production.")
      assert.deepStrictEqual(questions, [
        {
          message: "Deploy b1 where?",
          schema: {
            type: "object",
            properties: { environment: { type: "string", enum: ["staging", "production"] } },
            required: ["environment"]
          }
        }
      ])
    })
  )

  it.effect("C120: a url, a key and a confirmation reach the elicitor as they are", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({ name: Schema.String })
      const asked = Effect.all([
        Elicitor.ask({ message: "a", url: "https://example.com", key: "login" }),
        Elicitor.ask({ message: "b" }),
        Elicitor.ask({ message: "c", schema, key: "name" }),
        Elicitor.ask({ message: "d", schema: Form.make(schema) }),
        Elicitor.askRaw({ message: "e", schema: { type: "object", properties: {} }, key: "raw" })
      ])
      const none = Question.cancel
      const [, questions] = yield* scripted(asked, none, none, none, none, none)
      const form = Form.make(schema).schema
      assert.deepStrictEqual(questions, [
        { message: "a", url: "https://example.com", key: "login" },
        { message: "b" },
        { message: "c", schema: form, key: "name" },
        { message: "d", schema: form },
        { message: "e", schema: { type: "object", properties: {} }, key: "raw" }
      ])
    })
  )

  it.effect("C121: a refusal is an answer, with its own action", () =>
    Effect.gen(function* () {
      const asked = Elicitor.ask({ message: "m", schema: Schema.Struct({ a: Schema.String }) })
      assert.deepStrictEqual((yield* scripted(asked, Question.decline))[0], { action: "decline" })
      assert.deepStrictEqual((yield* scripted(asked, Question.cancel))[0], { action: "cancel" })
      assert.deepStrictEqual((yield* scripted(asked, Question.accept({ a: "x" })))[0], Question.accept({ a: "x" }))
    })
  )

  it.effect("C123: what breaks the asking reaches the tool as a failure that it can catch", () =>
    Effect.gen(function* () {
      const broken = Elicitor.layer({ ask: () => Effect.fail(new Question.AskFailed({ message: "connection lost" })) })
      const failed: Question.AskFailed = yield* Effect.flip(Effect.provide(deploy("b1"), broken))
      assert.deepStrictEqual([failed._tag, failed.message], ["AskFailed", "connection lost"])
      const caught = Effect.catchTag(deploy("b1"), "AskFailed", (error) => Effect.succeed(`later: ${error.message}`))
      assert.strictEqual(yield* Effect.provide(caught, broken), "later: connection lost")
    })
  )

  it.effect("C126: an answer that does not fit its type fails the asking, with the path", () =>
    Effect.gen(function* () {
      const text = yield* failure(deploy("b1"), Question.accept({ environment: "moon" }))
      assert.match(text, /^elicitation answer: environment: /)
    })
  )

  it.effect("C126: an accepted form without content is read as an empty object", () =>
    Effect.gen(function* () {
      const optional = Schema.Struct({ note: Schema.optionalKey(Schema.String) })
      const [answer] = yield* scripted(Elicitor.ask({ message: "m", schema: optional }), Question.accept(undefined))
      assert.deepStrictEqual(answer, Question.accept({}))
      const defaulted = Schema.Struct({ count: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(3))) })
      const [three] = yield* scripted(Elicitor.ask({ message: "m", schema: defaulted }), Question.accept(undefined))
      assert.deepStrictEqual(three, Question.accept({ count: 3 }))
      assert.match(yield* failure(deploy("b1"), Question.accept(undefined)), /^elicitation answer: environment: /)
      // Without a type there is nothing to decode.
      const [raw] = yield* scripted(Elicitor.ask({ message: "m" }), Question.accept(undefined))
      assert.deepStrictEqual(raw, Question.accept(undefined))
    })
  )

  it.effect("C127: a schema that is no form fails the asking, and nobody is asked", () =>
    Effect.gen(function* () {
      const secret = Schema.Struct({ token: Schema.RedactedFromValue(Schema.String) })
      const [error, questions] = yield* scripted(Effect.flip(Elicitor.ask({ message: "m", schema: secret })))
      assert.strictEqual(error.message, "elicitation schema: token: secrets are not asked for by a form (P43)")
      assert.deepStrictEqual(questions, [])
    })
  )

  it.effect("a type that has no place in a form is refused by the compiler", () =>
    Effect.gen(function* () {
      const nested = Schema.Struct({ a: Schema.Struct({ b: Schema.String }) })
      // @ts-expect-error an object inside a form
      const asked = Elicitor.ask({ message: "m", schema: nested })
      assert.include(
        String(yield* Effect.flip(asked as Effect.Effect<unknown, Question.AskFailed>)),
        "an object inside a form"
      )
      // @ts-expect-error a form and a page at once
      Elicitor.ask({ message: "m", schema: Schema.Struct({}), url: "https://example.com" })
    })
  )

  it.effect("a date in a form is a Date in the answer", () =>
    Effect.gen(function* () {
      const asked = Elicitor.ask({ message: "When?", schema: Schema.Struct({ day: Schema.Date }) })
      const [answer] = yield* scripted(asked, Question.accept({ day: "2026-12-01T00:00:00Z" }))
      const day: Date | undefined = answer.action === "accept" ? answer.content.day : undefined
      assert.strictEqual(day?.getUTCFullYear(), 2026)
    })
  )
})

describe("Elicitor helpers", () => {
  it.effect("confirm is true for a yes only", () =>
    Effect.gen(function* () {
      const asked = Elicitor.confirm("Delete?")
      const [yes, questions] = yield* scripted(asked, Question.accept({ confirm: true }))
      assert.isTrue(yes)
      assert.deepStrictEqual(questions[0]?.schema, {
        type: "object",
        properties: { confirm: { type: "boolean", title: "Confirm" } },
        required: ["confirm"]
      })
      assert.isFalse((yield* scripted(asked, Question.accept({ confirm: false })))[0])
      assert.isFalse((yield* scripted(asked, Question.decline))[0])
      assert.isFalse(yield* asked)
      assert.match(yield* failure(asked, Question.accept({})), /^elicitation answer: confirm: /)
    })
  )

  it.effect("choose gives the chosen value, with and without titles", () =>
    Effect.gen(function* () {
      const plain = Elicitor.choose("Which?", ["red", "green"])
      const [red, [question]] = yield* scripted(plain, Question.accept({ choice: "red" }))
      const colour: Option.Option<"red" | "green"> = red
      assert.deepStrictEqual(colour, Option.some("red"))
      assert.deepStrictEqual(question?.schema?.properties, { choice: { type: "string", enum: ["red", "green"] } })
      const titled = Elicitor.choose("Which?", [{ value: "s", title: "Small" }, "l"])
      const [small, [second]] = yield* scripted(titled, Question.accept({ choice: "s" }))
      assert.deepStrictEqual(small, Option.some("s"))
      assert.deepStrictEqual(second?.schema?.properties, {
        choice: {
          type: "string",
          oneOf: [
            { const: "s", title: "Small" },
            { const: "l", title: "l" }
          ]
        }
      })
      assert.deepStrictEqual((yield* scripted(plain, Question.decline))[0], Option.none())
      assert.match(yield* failure(titled, Question.accept({ choice: "Small" })), /^elicitation answer: choice: /)
      assert.include(
        yield* failure(Elicitor.choose("Which?", []), Question.accept({ choice: "x" })),
        "elicitation schema: choice: there is nothing to choose from"
      )
    })
  )

  it.effect("text gives what was written, which may be nothing", () =>
    Effect.gen(function* () {
      const asked = Elicitor.text("Name?")
      assert.deepStrictEqual((yield* scripted(asked, Question.accept({ text: "" })))[0], Option.some(""))
      assert.deepStrictEqual((yield* scripted(asked, Question.cancel))[0], Option.none())
    })
  )
})

describe("Elicitor.layerScripted", () => {
  it.effect("gives the answers in order, keeps the questions, and fails the asking when it runs out", () =>
    Effect.gen(function* () {
      const both = Effect.all([Elicitor.askRaw({ message: "one" }), Elicitor.askRaw({ message: "two" })])
      const [answers, questions] = yield* scripted(both, Question.decline, Question.cancel)
      assert.deepStrictEqual(answers, [Question.decline, Question.cancel])
      assert.deepStrictEqual(questions, [{ message: "one" }, { message: "two" }])
      assert.strictEqual(yield* failure(both, Question.decline), "no answer left for: two")
    })
  )

  it.effect("takes a function of the question, with an answer or an effect of one", () =>
    Effect.gen(function* () {
      const layer = Elicitor.layerScripted((question) =>
        question.message === "name?"
          ? Question.accept({ text: "Ada" })
          : Effect.fail(new Question.AskFailed({ message: "the line is dead" }))
      )
      const [name, other, questions] = yield* Effect.gen(function* () {
        const { questions } = yield* Elicitor.Transcript
        return [yield* Elicitor.text("name?"), yield* Effect.flip(Elicitor.text("age?")), yield* questions] as const
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(name, Option.some("Ada"))
      assert.strictEqual(other.message, "the line is dead")
      assert.strictEqual(questions.length, 2)
    })
  )

  it.effect("starts anew for whoever builds it", () =>
    Effect.gen(function* () {
      const layer = Elicitor.layerScripted([Question.decline])
      const once = Effect.provide(Elicitor.askRaw({ message: "m" }), Layer.fresh(layer))
      assert.deepStrictEqual(yield* Effect.all([once, once]), [Question.decline, Question.decline])
    })
  )
})
