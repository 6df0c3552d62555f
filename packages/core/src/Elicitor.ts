/**
 * How a tool asks the user a question in the middle of its work, and waits for the answer (C119–C129).
 *
 * A reference: a tool asks without knowing who answers, an MCP client, a terminal or a test. By default nobody does, and
 * every question is answered `cancel`. How a question travels and how a call waits is the business of whoever runs the
 * tool: here the tool simply waits.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Form from "./Form.ts"
import * as Question from "./Question.ts"

/**
 * Answers questions. Runs under the tool's context, with the call in it: `ToolCall.option` says who asks (C124).
 *
 * Fails when asking itself breaks. A refusal is an answer (C123).
 */
export interface ElicitorService {
  readonly ask: (question: Question.Question) => Effect.Effect<Question.Answer, Question.AskFailed>
}

/** Nobody to ask: every question is answered `cancel` (C122). The default, and what removes an elicitor. */
export const none: ElicitorService = { ask: () => Effect.succeed(Question.cancel) }

/** The reference that holds the elicitor. */
export const Elicitor: Context.Reference<ElicitorService> = Context.Reference<ElicitorService>(
  "@agenttool/core/Elicitor",
  { defaultValue: () => none }
)

/** A question as it is, with a schema that was written by hand, or none. The content of the answer is not decoded. */
export const askRaw = (question: Question.Question): Effect.Effect<Question.Answer, Question.AskFailed> =>
  Effect.flatMap(Effect.service(Elicitor), (elicitor) => elicitor.ask(question))

interface Asked {
  /** For the user. */
  readonly message: string
  /** The question's own name on the wire, for an answer that comes with the first request; numbered without one. */
  readonly key?: string | undefined
}

/**
 * Asks the user, and waits.
 *
 * - With a `schema`: a form. The answer's content is a value of the schema's type; content that does not fit fails the
 *   asking with `elicitation answer: PATH: …`. An accepted form without content is read as `{}` (C126). A schema that is
 *   no form fails it with `elicitation schema: PATH: …`.
 * - With a `url`: a page on which the user answers.
 * - With neither: a confirmation.
 *
 * The form of a schema is made once per schema: keep it outside the tool's function, or `Form.make` it.
 *
 * @example
 * ```ts
 * import { Elicitor } from "@agenttool/core"
 * import { Effect, Schema } from "effect"
 *
 * const Target = Schema.Struct({ environment: Schema.Literals(["staging", "production"]) })
 *
 * const deploy = Effect.fn(function* (build: string) {
 *   const answer = yield* Elicitor.ask({ message: `Deploy ${build} where?`, schema: Target })
 *   if (answer.action !== "accept") return "Nothing was deployed."
 *   return `Deployed to ${answer.content.environment}.`
 * })
 * ```
 */
export const ask: {
  <A>(
    question: Asked & { readonly schema: Form.Form<A>; readonly url?: undefined }
  ): Effect.Effect<Question.Answer<A>, Question.AskFailed>
  (
    question: Asked & { readonly schema?: undefined; readonly url?: string | undefined }
  ): Effect.Effect<Question.Answer, Question.AskFailed>
  // Last: what the compiler says of a schema that is no form is said of this one.
  <const F extends Schema.Struct.Fields>(
    question: Asked & { readonly schema: Schema.Struct<F> & Form.Flat<F>; readonly url?: undefined }
  ): Effect.Effect<Question.Answer<Schema.Struct.Type<F>>, Question.AskFailed>
} = <F extends Schema.Struct.Fields>(
  question: Asked & {
    readonly schema?: Form.Form<Schema.Struct.Type<F>> | Schema.Struct<F> | undefined
    readonly url?: string | undefined
  }
  // Each overload is one of the two kinds of answer below.
): Effect.Effect<Question.Answer<never>, Question.AskFailed> => {
  const { key, message, schema, url } = question
  const asked: Question.Question = { message, ...(key === undefined ? {} : { key }) }
  const answer = schema === undefined ? askRaw(url === undefined ? asked : { ...asked, url }) : askForm(asked, schema)
  return answer as Effect.Effect<Question.Answer<never>, Question.AskFailed>
}

const askForm = <F extends Schema.Struct.Fields>(
  question: Question.Question,
  schema: Form.Form<Schema.Struct.Type<F>> | Schema.Struct<F>
): Effect.Effect<Question.Answer<Schema.Struct.Type<F>>, Question.AskFailed> =>
  Effect.gen(function* () {
    const form = Form.isForm(schema)
      ? schema
      : yield* Effect.mapError(
          Effect.fromResult(Form.fromStruct(schema)),
          (error) => new Question.AskFailed({ message: error.message })
        )
    const answer = yield* askRaw({ ...question, schema: form.schema })
    return answer.action === "accept" ? Question.accept(yield* form.decode(answer.content ?? {})) : answer
  })

const Confirmation = Form.make(Schema.Struct({ confirm: Schema.Boolean.annotate({ title: "Confirm" }) }))

/**
 * Whether the user says yes: `true` only for an accepted form with its one box ticked.
 *
 * @example
 * ```ts
 * import { Elicitor } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const removed = Effect.gen(function* () {
 *   return (yield* Elicitor.confirm("Delete 3 files?")) ? "deleted" : "kept"
 * })
 * ```
 */
export const confirm = (message: string): Effect.Effect<boolean, Question.AskFailed> =>
  Effect.map(ask({ message, schema: Confirmation }), (answer) => answer.action === "accept" && answer.content.confirm)

/**
 * The one of these that the user chooses; none when they refuse. A choice is a text, or a text with a title.
 *
 * @example
 * ```ts
 * import { Elicitor } from "@agenttool/core"
 *
 * const colour = Elicitor.choose("Which colour?", ["red", "green"])
 * const size = Elicitor.choose("Which size?", [{ value: "s", title: "Small" }, { value: "l", title: "Large" }])
 * ```
 */
export const choose = <const V extends string>(
  message: string,
  choices: ReadonlyArray<V | Form.Choice<V>>
): Effect.Effect<Option.Option<V>, Question.AskFailed> => {
  const titled = choices.some((choice) => typeof choice !== "string")
  const options = choices.map((choice) => (typeof choice === "string" ? { value: choice, title: choice } : choice))
  const field: Schema.Codec<V> = titled ? Form.choice(options) : Schema.Literals(options.map(({ value }) => value))
  return Effect.map(askForm({ message }, Schema.Struct({ choice: field })), (answer) =>
    answer.action === "accept" ? Option.some(answer.content.choice) : Option.none()
  )
}

const Text = Form.make(Schema.Struct({ text: Schema.String }))

/** What the user writes; none when they refuse. */
export const text = (message: string): Effect.Effect<Option.Option<string>, Question.AskFailed> =>
  Effect.map(ask({ message, schema: Text }), (answer) =>
    answer.action === "accept" ? Option.some(answer.content.text) : Option.none()
  )

/** Installs an elicitor for everything that runs under it. */
export const layer = (elicitor: ElicitorService): Layer.Layer<never> => Layer.succeed(Elicitor, elicitor)

/** Nobody is asked under this, whoever could be (C125). */
export const layerNone: Layer.Layer<never> = layer(none)

/** What was asked of {@link layerScripted}, in order. */
export class Transcript extends Context.Service<
  Transcript,
  { readonly questions: Effect.Effect<ReadonlyArray<Question.Question>> }
>()("@agenttool/core/Elicitor/Transcript") {}

/**
 * An elicitor for tests: gives these answers in order, or what the function gives for a question. Out of answers, asking
 * fails. {@link Transcript} has the questions.
 *
 * @example
 * ```ts
 * import { Elicitor, Question } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const asked = Effect.gen(function* () {
 *   const yes = yield* Elicitor.confirm("Sure?")
 *   const { questions } = yield* Elicitor.Transcript
 *   return [yes, (yield* questions).length] // [true, 1]
 * }).pipe(Effect.provide(Elicitor.layerScripted([Question.accept({ confirm: true })])))
 * ```
 */
export const layerScripted = (
  answers:
    | ReadonlyArray<Question.Answer>
    | ((question: Question.Question) => Question.Answer | Effect.Effect<Question.Answer, Question.AskFailed>)
): Layer.Layer<Transcript> =>
  Layer.effectContext(
    Effect.map(Ref.make<ReadonlyArray<Question.Question>>([]), (asked) => {
      const elicitor: ElicitorService = {
        ask: Effect.fnUntraced(function* (question) {
          const before = yield* Ref.getAndUpdate(asked, (all) => [...all, question])
          const answer = typeof answers === "function" ? answers(question) : answers[before.length]
          if (answer === undefined) {
            return yield* new Question.AskFailed({ message: `no answer left for: ${question.message}` })
          }
          return Effect.isEffect(answer) ? yield* answer : answer
        })
      }
      return Context.make(Transcript, { questions: Ref.get(asked) }).pipe(Context.add(Elicitor, elicitor))
    })
  )
