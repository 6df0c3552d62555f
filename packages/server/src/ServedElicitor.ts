/**
 * The elicitor of a served call: checks a question, asks the client whichever way it can be asked, checks the answer
 * (M46–M51). A tool cannot tell the ways apart.
 */
import * as Form from "@agenttool/core/Form"
import type * as Elicitor from "@agenttool/core/Elicitor"
import * as Question from "@agenttool/core/Question"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Asking from "./Asking.ts"
import type * as Calls from "./Calls.ts"
import * as Capabilities from "./Capabilities.ts"
import * as Wire from "./Wire.ts"

/** The elicitor for a client with these capabilities, those of the call's first request. */
export const make = (options: {
  readonly capabilities: Schema.Json
  readonly ask: Asking.Ask
}): Elicitor.ElicitorService => ({
  ask: (question) => Effect.suspend(() => askOne(question, options))
})

const askOne = (
  question: Question.Question,
  { ask, capabilities }: { readonly capabilities: Schema.Json; readonly ask: Asking.Ask }
): Effect.Effect<Question.Answer, Question.AskFailed> => {
  const params = paramsOf(question)
  const request: Calls.InputRequest = { id: "", method: "elicitation/create", params }
  if (!Capabilities.carries(capabilities, request)) return Effect.succeed(Question.cancel)
  const form = checkedForm(question)
  if (Result.isFailure(form)) return failed(form.failure)
  const check = (response: Schema.Json) => Question.checkAnswer(form.success, response)
  const asked: Asking.Asked = {
    key: question.key,
    method: "elicitation/create",
    params,
    fits: (response) => Result.isSuccess(check(response))
  }
  return Effect.flatMap(
    Effect.mapError(ask(asked), ({ message }) => new Question.AskFailed({ message })),
    (reply) => {
      if (reply._tag === "Unasked") return Effect.succeed(Question.cancel)
      const answer = check(reply.response)
      return Result.isSuccess(answer) ? Effect.succeed(answer.success) : failed(answer.failure)
    }
  )
}

const failed = (error: { readonly message: string }) =>
  Effect.fail(new Question.AskFailed({ message: `mcpserver: ${error.message}` }))

/** The parameters of the question, as every revision has them; a url question's schema is ignored (M48). */
const paramsOf = (question: Question.Question): Schema.Json =>
  Question.isUrl(question)
    ? { mode: "url", message: question.message, url: question.url }
    : { mode: "form", message: question.message, requestedSchema: question.schema ?? Wire.emptyForm }
