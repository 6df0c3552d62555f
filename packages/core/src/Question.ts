/**
 * A question that a tool asks in the middle of its work, and the answer to it (C120–C122). Plain data, no transport.
 *
 * `Elicitor` asks questions, `Form` says what a question's schema may be; {@link checkAnswer} reads an answer that came
 * from outside.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { oneLine, quote } from "./ToolError.ts"

/**
 * A question.
 *
 * - `message`: for the user.
 * - `schema`: the JSON Schema of a form: an object with flat members. Absent: a confirmation, a form without fields.
 * - `url`: a page on which the user answers. With it, `schema` is ignored.
 * - `key`: the question's own name on the wire; without one it is numbered.
 */
export interface Question {
  readonly message: string
  readonly schema?: Schema.JsonObject | undefined
  readonly url?: string | undefined
  readonly key?: string | undefined
}

/**
 * What came back.
 *
 * - `accept`: the user sent the form, or said yes; `content` is the form's object, if there was one.
 * - `decline`: the user said no.
 * - `cancel`: no answer: waved away, or nobody could be asked. A harness that cannot ask says this, never `decline`.
 */
export type Answer<A = Schema.JsonObject | undefined> =
  | { readonly action: "accept"; readonly content: A }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

/** Nobody answered. */
export const cancel: Answer<never> = { action: "cancel" }

/** The user said no. */
export const decline: Answer<never> = { action: "decline" }

/** The user agreed. */
export const accept = <A>(content: A): Answer<A> => ({ action: "accept", content })

/** Asking itself failed (C123). A refusal is an answer, not this. */
export class AskFailed extends Schema.TaggedError<AskFailed>()("AskFailed", {
  message: Schema.String
}) {}

/** The three kinds of question (C120): a `url` that is not empty makes it a url question, whatever else it has. */
export const kindOf = (question: Question): "url" | "form" | "confirmation" =>
  question.url !== undefined && question.url !== "" ? "url" : question.schema === undefined ? "confirmation" : "form"

/**
 * Reads an answer that came from outside (C126, M51): from an MCP client, or from any other program.
 *
 * - `check` judges the content of an accepted form: the words about what does not fit, or `undefined`. Without it, the
 *   question had no schema and any content is taken.
 * - The content of a refusal is dropped. An accepted answer without content (or with `null`) is taken as it is, unchecked.
 * - Everything else fails, with a message that begins `elicitation answer: `.
 *
 * @example
 * ```ts
 * import { Question } from "@agenttool/core"
 *
 * Question.checkAnswer({ action: "decline", content: {} }) // Result.succeed({ action: "decline" })
 * Question.checkAnswer({ action: "maybe" }) // fails: elicitation answer: unknown action "maybe"
 * ```
 */
export const checkAnswer = (
  raw: unknown,
  check?: (content: unknown) => string | undefined
): Result.Result<Answer, AskFailed> => {
  if (!Predicate.hasProperty(raw, "action")) return misfit(`the client answered with ${foreignKind(raw)}`)
  switch (raw.action) {
    case "decline":
      return Result.succeed(decline)
    case "cancel":
      return Result.succeed(cancel)
    case "accept": {
      const content = Predicate.hasProperty(raw, "content") ? raw.content : undefined
      if (content === undefined || content === null) return Result.succeed(accept(undefined))
      const words = check?.(content)
      if (words !== undefined) return misfit(words)
      return isJsonObject(content) ? Result.succeed(accept(content)) : misfit("must be object")
    }
    default:
      return misfit(`unknown action ${shown(raw.action)}`)
  }
}

/** The failure of asking because of what came back: `elicitation answer: ` and these words. */
export const unfitAnswer = (words: string): AskFailed => new AskFailed({ message: `elicitation answer: ${words}` })

const misfit = (words: string): Result.Result<never, AskFailed> => Result.fail(unfitAnswer(words))

// Came as JSON: an object of it has JSON members.
const isJsonObject = (value: unknown): value is Schema.JsonObject => Predicate.isObject(value)

/** What an answer is that is none, in words. */
const foreignKind = (raw: unknown): string => {
  if (raw === undefined) return "nothing"
  if (raw === null) return "null"
  if (Array.isArray(raw)) return "an array"
  if (typeof raw !== "object") return `a ${typeof raw}`
  if (Predicate.hasProperty(raw, "roots")) return "a roots result"
  if (Predicate.hasProperty(raw, "role") || Predicate.hasProperty(raw, "model")) return "a sampling result"
  return "an object without an action"
}

const shown = (action: unknown): string =>
  typeof action === "string"
    ? quote(oneLine(action).slice(0, 80))
    : action === null || typeof action === "number" || typeof action === "boolean"
      ? String(action)
      : `of type ${Array.isArray(action) ? "array" : typeof action}`
