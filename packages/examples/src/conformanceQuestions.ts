/**
 * The tools of the conformance server that ask in the middle of their work: the user by a form, the client's model, the
 * client for its roots. They are the same for clients of every revision; how a question travels is the server's business.
 */
import { Elicitor, Form, type Question, Tool } from "@agenttool/core"
import { ClientRequests, McpServer } from "@agenttool/server"
import { Effect, Schema } from "effect"

const Confirmation = Form.make(Schema.Struct({ ok: Schema.Boolean.annotate({ title: "Agreed" }) }))

/** Asks for a yes, under a key of the tool's own. */
const confirm = (message: string) => Elicitor.ask({ message, schema: Confirmation, key: "confirm" })

/** What the client's model says. */
const complete = (prompt: string, maxTokens = 100) =>
  ClientRequests.createMessage({ messages: [{ role: "user", content: { type: "text", text: prompt } }], maxTokens })

const shown = (answer: Question.Answer<unknown>): string =>
  answer.action === "accept" ? `accept, ${JSON.stringify(answer.content)}` : answer.action

// ----- one question

const User = Form.make(Schema.Struct({ name: Schema.String.annotate({ title: "Name" }) }))

const elicitation = Tool.make("test_input_required_result_elicitation", {
  description: "Asks for a name",
  execute: Effect.fn(function* () {
    const answer = yield* Elicitor.ask({ message: "What is your name?", schema: User, key: "user_name" })
    return answer.action === "accept" ? `Hello, ${answer.content.name}.` : "Nobody there."
  })
})

const sampling = Tool.make("test_input_required_result_sampling", {
  description: "Asks the model of the client",
  execute: () =>
    Effect.map(complete("What is the capital of France?"), (message) => `It said ${JSON.stringify(message)}.`)
})

const listRoots = Tool.make("test_input_required_result_list_roots", {
  description: "Asks for the roots of the client",
  execute: () => Effect.map(ClientRequests.listRoots, (roots) => `Roots: ${roots.map(({ uri }) => uri).join(", ")}.`)
})

const requestState = Tool.make("test_input_required_result_request_state", {
  description: "Asks, and is known again by the state that the client brings back",
  execute: () => Effect.map(confirm("Go on?"), (answer) => `state-ok: ${shown(answer)}`)
})

const tamperedState = Tool.make("test_input_required_result_tampered_state", {
  description: "Asks, and cannot be reached by a state that somebody has changed",
  execute: () => Effect.map(confirm("Go on?"), (answer) => `It was the state as it is: ${shown(answer)}`)
})

// ----- several questions

const multipleInputs = Tool.make("test_input_required_result_multiple_inputs", {
  description: "Asks the user, the model and the client at once",
  execute: Effect.fn(function* () {
    const [answer, message, roots] = yield* Effect.all(
      [
        Elicitor.ask({ message: "What is your name?", schema: User }),
        complete("Greet somebody."),
        ClientRequests.listRoots
      ],
      { concurrency: "unbounded" }
    )
    return `${shown(answer)}; ${JSON.stringify(message)}; ${roots.length} roots`
  })
})

const Colour = Form.make(Schema.Struct({ colour: Schema.Literals(["red", "green", "blue"]) }))

const multiRound = Tool.make("test_input_required_result_multi_round", {
  description: "Asks for a name, and then for a colour",
  execute: Effect.fn(function* () {
    const name = yield* Elicitor.ask({ message: "What is your name?", schema: User })
    const colour = yield* Elicitor.ask({ message: "Which colour do you like?", schema: Colour })
    return `${shown(name)}; ${shown(colour)}`
  })
})

const capabilities = Tool.make("test_input_required_result_capabilities", {
  description: "Asks whoever the client lets it ask",
  execute: Effect.fn(function* () {
    // Nobody is asked what the client does not offer: a user who cannot be asked cancels, a model fails.
    const answer = yield* confirm("May the model be asked?")
    return yield* complete("Say hello.").pipe(
      Effect.map((message) => `${shown(answer)}; ${JSON.stringify(message)}`),
      Effect.catchTag("ClientRequestFailed", () => Effect.succeed(shown(answer)))
    )
  })
})

// ----- what 2025 clients are asked while the call is open

const Contact = Form.make(
  Schema.Struct({
    username: Schema.String.annotate({ description: "Your name" }),
    email: Schema.String.annotate({ description: "Your e-mail address" })
  })
)

const openElicitation = Tool.make("test_elicitation", {
  description: "Asks for a name and an address",
  parameters: Schema.Struct({ message: Schema.String.annotate({ description: "What to ask" }) }),
  execute: ({ message }) =>
    Effect.map(Elicitor.ask({ message, schema: Contact }), (answer) => `User response: ${shown(answer)}`)
})

const openSampling = Tool.make("test_sampling", {
  description: "Asks the model of the client",
  parameters: Schema.Struct({ prompt: Schema.String.annotate({ description: "What to ask" }) }),
  execute: ({ prompt }) => Effect.map(complete(prompt), (message) => `LLM response: ${JSON.stringify(message)}`)
})

const WithDefaults = Form.make(
  Schema.Struct({
    name: Schema.optionalKey(Schema.String.annotate({ default: "John Doe" })),
    age: Schema.optionalKey(Schema.Int.annotate({ default: 30 })),
    score: Schema.optionalKey(Schema.Finite.annotate({ default: 95.5 })),
    status: Schema.optionalKey(Schema.Literals(["active", "inactive", "pending"]).annotate({ default: "active" })),
    verified: Schema.optionalKey(Schema.Boolean.annotate({ default: true }))
  })
)

const defaults = Tool.make("test_elicitation_sep1034_defaults", {
  description: "Asks by a form with defaults",
  execute: () =>
    Effect.map(Elicitor.ask({ message: "Is this right?", schema: WithDefaults }), (answer) => shown(answer))
})

const titled = [
  { const: "value1", title: "First Choice" },
  { const: "value2", title: "Second Choice" },
  { const: "value3", title: "Third Choice" }
]

const untitled = ["option1", "option2", "option3"]

// A form may be written by hand as well, with titles as the first revisions that had forms knew them.
const choices = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: untitled },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"]
    },
    untitledMulti: { type: "array", items: { type: "string", enum: untitled } },
    titledMulti: { type: "array", items: { anyOf: titled } }
  }
}

const enums = Tool.make("test_elicitation_sep1330_enums", {
  description: "Asks by a form with every kind of choice",
  execute: () => Effect.map(Elicitor.askRaw({ message: "Choose.", schema: choices }), shown)
})

export const AskingTools = McpServer.tools(
  elicitation,
  sampling,
  listRoots,
  requestState,
  tamperedState,
  multipleInputs,
  multiRound,
  capabilities,
  openElicitation,
  openSampling,
  defaults,
  enums
)
