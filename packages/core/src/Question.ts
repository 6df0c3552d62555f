/**
 * A question that a tool asks in the middle of its work, and the answer to it (C120–C122). Plain data, no transport.
 */
import * as Schema from "effect/Schema"

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
