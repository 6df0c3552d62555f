/**
 * An elicitor that asks at the terminal, for a program that runs tools in front of its user.
 *
 * Walks the fields of a form one by one, then asks whether to send. One question is asked at a time; others wait. Ctrl-C
 * and the end of input are `cancel`, a no is `decline`. Not for a server on stdio: its terminal belongs to the protocol.
 *
 * A module of its own, outside the index: what draws prompts is loaded by programs that need it.
 */
import * as Prompt from "effect/cli/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Terminal from "effect/Terminal"
import * as Elicitor from "./Elicitor.ts"
import * as Form from "./Form.ts"
import * as JsonSchemaCheck from "./JsonSchemaCheck.ts"
import * as Question from "./Question.ts"

/**
 * Asks at the terminal that is provided.
 *
 * @example
 * ```ts
 * import { Elicitor } from "@agenttool/core"
 * import * as ElicitorTerminal from "@agenttool/core/ElicitorTerminal"
 * import { Effect } from "effect"
 *
 * // Needs a Terminal: NodeServices.layer of @effect/platform-node has one.
 * const asked = Elicitor.confirm("Delete 3 files?").pipe(Effect.provide(ElicitorTerminal.layer))
 * ```
 */
export const layer: Layer.Layer<never, never, Terminal.Terminal> = Layer.effect(
  Elicitor.Elicitor,
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    // Prompts ask for files too; none here does.
    const files = yield* Layer.build(Layer.merge(FileSystem.layerNoop({}), Path.layer))
    const environment = Context.add(files, Terminal.Terminal, terminal)
    const turn = yield* Semaphore.make(1)
    return {
      ask: (question) =>
        askAt(terminal, question).pipe(
          Effect.catchTag("QuitError", () => Effect.succeed(Question.cancel)),
          Effect.provideContext(environment),
          Semaphore.withPermit(turn)
        )
    }
  })
)

type Asking<A> = Effect.Effect<A, Question.AskFailed | Terminal.QuitError, Prompt.Environment>

const askAt = (terminal: Terminal.Terminal, question: Question.Question): Asking<Question.Answer> => {
  const message = plain(question.message)
  switch (Question.kindOf(question)) {
    case "confirmation":
      return consent(message)
    case "url":
      return Effect.andThen(show(terminal, `${message}\n${plain(question.url ?? "")}\n`), consent("Done there?"))
    case "form":
      return Effect.gen(function* () {
        const form = yield* Effect.mapError(
          Effect.fromResult(Form.compile(question.schema ?? {})),
          (error) => new Question.AskFailed({ message: error.message })
        )
        yield* show(terminal, `${message}\n`)
        const content = yield* fillIn(form.schema)
        if (!(yield* Prompt.Confirm({ message: "Send this answer?", initial: true }))) return Question.decline
        return yield* Effect.fromResult(Question.checkAnswer({ action: "accept", content }, form.check))
      })
  }
}

const consent = (message: string): Asking<Question.Answer> =>
  Effect.map(Prompt.Confirm({ message }), (yes) => (yes ? Question.accept(undefined) : Question.decline))

const show = (terminal: Terminal.Terminal, text: string): Effect.Effect<void, Question.AskFailed> =>
  Effect.mapError(terminal.display(text), (error) => new Question.AskFailed({ message: `terminal: ${error.message}` }))

// What a tool or a model wrote must not steer the terminal.
const plain = (text: string): string =>
  text.replace(/\p{Cc}/gu, (control) => (control === "\n" ? "\n" : " ")).replace(/\p{Bidi_Control}/gu, "")

type Node = { readonly [key: string]: unknown }

const isNode = (value: unknown): value is Node => Predicate.isObject(value)

/** One prompt per field; a field that is left out is not in the content. */
const fillIn = Effect.fnUntraced(function* (schema: Schema.JsonObject) {
  const properties = isNode(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required : []
  const content: Array<readonly [string, unknown]> = []
  for (const [name, member] of Object.entries(properties)) {
    if (!isNode(member)) continue
    const value = yield* promptOf(name, member, required.includes(name))
    if (value !== undefined) content.push([name, value])
  }
  return Object.fromEntries(content)
})

const promptOf = (name: string, member: Node, required: boolean): Prompt.Prompt<unknown> => {
  const message = labelOf(name, member, required)
  if (member.type === "array") return several(message, member, required)
  if (member.type === "boolean") {
    if (required) return Prompt.Confirm({ message, initial: member.default === true })
    return one(
      message,
      [
        { title: "yes", value: true },
        { title: "no", value: false }
      ],
      member.default,
      required
    )
  }
  const choices = choicesOf(member)
  return choices === undefined ? written(message, member, required) : one(message, choices, member.default, required)
}

const labelOf = (name: string, { description, title }: Node, required: boolean): string => {
  const label = typeof title === "string" && title !== "" ? title : name
  const more = typeof description === "string" && description !== "" ? ` (${description})` : ""
  return plain(`${label}${more}${required ? "" : " [optional]"}`)
}

interface Choice {
  readonly title: string
  readonly value: unknown
}

/** What may be chosen: constants with titles, or an enum with or without names beside it. */
const choicesOf = ({ anyOf, enum: values, enumNames, oneOf }: Node): ReadonlyArray<Choice> | undefined => {
  const titled = oneOf ?? anyOf
  if (Array.isArray(titled)) {
    return titled.filter(isNode).map((choice) => ({ title: plain(String(choice.title)), value: choice.const }))
  }
  if (!Array.isArray(values)) return undefined
  const names = Array.isArray(enumNames) ? enumNames : []
  return values.map((value, index) => ({ title: plain(String(names[index] ?? value)), value }))
}

const one = (
  message: string,
  choices: ReadonlyArray<Choice>,
  selected: unknown,
  required: boolean
): Prompt.Prompt<unknown> => {
  const preset = choices.findIndex((choice) => choice.value === selected)
  return Prompt.Select<unknown>({
    message,
    choices: [
      ...choices.map((choice, index) => ({ ...choice, selected: index === preset })),
      ...(required ? [] : [{ title: "(leave out)", value: undefined }])
    ]
  })
}

const several = (message: string, member: Node, required: boolean): Prompt.Prompt<unknown> => {
  const selected = Array.isArray(member.default) ? member.default : []
  const { maxItems, minItems } = member
  const prompt = Prompt.MultiSelect<unknown>({
    message,
    choices: (choicesOf(isNode(member.items) ? member.items : {}) ?? []).map((choice) => ({
      ...choice,
      selected: selected.includes(choice.value)
    })),
    // Nothing chosen leaves an optional field out, whatever its least number is.
    ...(required && typeof minItems === "number" ? { min: minItems } : {}),
    ...(typeof maxItems === "number" ? { max: maxItems } : {})
  })
  return Prompt.map(prompt, (chosen) => (chosen.length === 0 && !required ? undefined : chosen))
}

/** A text or a number, judged by the field's own schema before it is taken. */
const written = (message: string, member: Node, required: boolean): Prompt.Prompt<unknown> => {
  const preset = typeof member.default === "string" || typeof member.default === "number" ? String(member.default) : ""
  const judge = judgeOf(member)
  const read = (text: string): unknown => {
    const given = text === "" ? preset : text
    if (given === "" && !(required && member.type === "string")) return undefined
    return member.type === "string" ? given : Number(given)
  }
  const prompt = Prompt.String({
    message,
    default: preset,
    validate: (text) => {
      const value = read(text)
      const words = value === undefined ? (required ? "an answer is needed" : undefined) : judge(value)
      return words === undefined ? Effect.succeed(text) : Effect.fail(words)
    }
  })
  return Prompt.map(prompt, read)
}

const judgeOf = (member: Node): ((value: unknown) => string | undefined) => {
  // A member of a form that has been compiled is a schema by itself: flat forms have no references.
  const compiled = Result.getOrElse(
    JsonSchemaCheck.compile(member as Schema.JsonObject),
    (): JsonSchemaCheck.JsonSchemaCheck => ({ _tag: "Unchecked", dialect: "" })
  )
  return compiled._tag === "Checked" ? compiled.check : () => undefined
}
