/**
 * What a tool's wish to ask the client becomes, before it is on any wire: generic over MCP's input requests.
 *
 * `CallsMemory` carries it out; `ServedElicitor` puts form and url questions on top of it.
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Calls from "./Calls.ts"
import type * as Settings from "./Settings.ts"

/** One thing to ask. `fits` says whether an answer that came with the first request is one to this question. */
export interface Asked {
  readonly key: string | undefined
  readonly method: Calls.InputRequest["method"]
  readonly params: Schema.Json
  readonly fits: (response: Schema.Json) => boolean
}

/** What came of it: the client's response as it is, or none, because the client cannot or can no longer be asked. */
export type Reply = { readonly _tag: "Response"; readonly response: Schema.Json } | { readonly _tag: "Unasked" }

/** Nobody could be asked. */
export const unasked: Reply = { _tag: "Unasked" }

/** The client's response. */
export const response = (json: Schema.Json): Reply => ({ _tag: "Response", response: json })

/** Asking failed. The tool may catch it; the text says what to do. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

/** Asks the client of the running call. */
export type Ask = (asked: Asked) => Effect.Effect<Reply, Refused>

/** One request too many (M57), no room to park the call (M62), or too many questions of one call at once. */
export const refused = (why: "requests" | "parked" | "questions", settings: Settings.Settings): Refused => {
  switch (why) {
    case "requests":
      return new Refused({
        message: `mcpserver: elicitation: the client makes ${settings.maxRequests} requests of a call at most and this question would need one more; ask fewer questions, or ask them together`
      })
    case "parked":
      return new Refused({ message: "mcpserver: elicitation: too many calls are waiting for answers; try again later" })
    case "questions":
      return new Refused({
        message: `mcpserver: elicitation: ${settings.maxQuestions} questions are open in this call, and more are not allowed`
      })
  }
}

/** The client could not be asked while its request was open (M66). */
export const pushFailed = (detail: string): Refused => new Refused({ message: `mcpserver: elicitation: ${detail}` })

/** The key is that of a question that waits for its answer. */
export const keyInUse = (key: string): Refused =>
  new Refused({ message: `mcpserver: elicitation: the question key ${JSON.stringify(key)} is in use` })

/** The key could be taken for the number of another question. */
export const keyLooksCounted = (key: string): Refused =>
  new Refused({ message: `mcpserver: elicitation: the question key ${JSON.stringify(key)} looks like a numbered one` })

/** Whether a key looks like the id of a question without one. */
export const looksCounted = (key: string): boolean => /^elicit_\d+$/.test(key)
