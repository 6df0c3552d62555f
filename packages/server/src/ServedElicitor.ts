/**
 * The elicitor of a served call: checks a question, asks the client whichever way it can be asked, checks the answer
 * (M46–M51). A tool cannot tell the ways apart.
 */
import type * as Form from "@agenttool/core/Form"
import type * as Elicitor from "@agenttool/core/Elicitor"
import * as Question from "@agenttool/core/Question"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Asking from "./Asking.ts"
import * as Capabilities from "./Capabilities.ts"
import * as Wire from "./Wire.ts"

/** Prepares the form of a question, at best once for all calls that ask it. */
export type Compile = (schema: Schema.JsonObject) => Effect.Effect<Form.Compiled, Form.FormError>

interface Options {
  readonly capabilities: Schema.Json
  readonly ask: Asking.Ask
  readonly compile: Compile
}

/** The elicitor for a client with these capabilities, those of the call's first request. */
export const make = (options: Options): Elicitor.ElicitorService => ({
  ask: (question) => Effect.suspend(() => askOne(question, options))
})

const askOne = (
  question: Question.Question,
  { ask, capabilities, compile }: Options
): Effect.Effect<Question.Answer, Question.AskFailed> => {
  const params = paramsOf(question)
  if (!Capabilities.carries(capabilities, { id: "", method: "elicitation/create", params })) {
    return Effect.succeed(Question.cancel)
  }
  const askWith = (check?: Form.Compiled["check"]) => {
    const read = (response: Schema.Json) => Question.checkAnswer(response, check)
    const asked: Asking.Asked = {
      key: question.key,
      method: "elicitation/create",
      params,
      fits: (response) => Result.isSuccess(read(response))
    }
    return Effect.flatMap(Effect.mapError(ask(asked), asFailure), (reply) =>
      reply._tag === "Unasked"
        ? Effect.succeed(Question.cancel)
        : Effect.mapError(Effect.fromResult(read(reply.response)), prefixed)
    )
  }
  return question.schema === undefined || Question.kindOf(question) !== "form"
    ? askWith()
    : Effect.flatMap(Effect.mapError(compile(question.schema), prefixed), ({ check }) => askWith(check))
}

const asFailure = ({ message }: { readonly message: string }) => new Question.AskFailed({ message })

const prefixed = ({ message }: { readonly message: string }) => asFailure({ message: `mcpserver: ${message}` })

/** The parameters of the question, as every revision has them; a url question's schema is ignored (M48). */
const paramsOf = (question: Question.Question): Schema.Json =>
  Question.kindOf(question) === "url"
    ? { mode: "url", message: question.message, url: question.url ?? "" }
    : { mode: "form", message: question.message, requestedSchema: question.schema ?? Wire.emptyForm }
