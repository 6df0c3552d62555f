/**
 * The tools that clients of other makers call: a text, a failure, progress, something that is held until the call is
 * cancelled, a question, and a question after a question. `npm run test:interop` calls them with each client.
 */
import { Elicitor, Form, Progress, Tool } from "@agenttool/core"
import { McpServer, StopReason } from "@agenttool/server"
import { Console, Effect, Exit, Option, Schema } from "effect"

const echo = Tool.make("echo", {
  description: "Gives back a text",
  parameters: Schema.Struct({ text: Schema.String.annotate({ description: "The text" }) }),
  execute: ({ text }) => Effect.succeed(text)
})

class DiskFull extends Schema.TaggedError<DiskFull>()("DiskFull", { disk: Schema.String }) {
  override get message(): string {
    return `disk ${this.disk} is full`
  }
}

const fail = Tool.make("fail", {
  description: "Fails",
  failure: DiskFull,
  execute: () => Effect.fail(new DiskFull({ disk: "sda" }))
})

const steps = Tool.make("steps", {
  description: "Takes ten steps, and reports each",
  execute: Effect.fn("steps")(function* () {
    for (let step = 1; step <= 10; step++) {
      yield* Progress.report({ message: `step ${step}`, progress: step, total: 10 })
      yield* Effect.sleep("10 millis")
    }
    return "took 10 steps"
  })
})

/** Why the call ended, as its finalizers see it. */
const whyOf = Exit.match({
  onSuccess: () => "done",
  onFailure: (cause) => Option.getOrElse(StopReason.of(cause), () => "unknown")
})

const slow = Tool.make("slow", {
  description:
    "Holds something until it is cancelled; reports once that it does, and says on standard error what it holds",
  parameters: Schema.Struct({ label: Schema.String.annotate({ description: "What it holds" }) }),
  execute: Effect.fn("slow")(function* ({ label }) {
    yield* Effect.acquireRelease(Console.error(`acquired ${label}`), (_, exit) =>
      Console.error(`released ${label}: ${whyOf(exit)}`)
    )
    yield* Progress.report("holding")
    return yield* Effect.never
  })
})

const Name = Form.make(Schema.Struct({ name: Schema.String.annotate({ title: "Name" }) }))

const ask = Tool.make("ask", {
  description: "Asks for a name, and greets",
  execute: Effect.fn("ask")(function* () {
    const answer = yield* Elicitor.ask({ message: "What is your name?", schema: Name })
    return answer.action === "accept" ? `Hello, ${answer.content.name}.` : `Nobody to greet: ${answer.action}.`
  })
})

const askTwice = Tool.make("ask_twice", {
  description: "Asks for a colour, and then whether it is really that one",
  execute: Effect.fn("ask_twice")(function* () {
    const colour = yield* Elicitor.choose("Which colour?", ["red", "green"])
    if (Option.isNone(colour)) return "No colour."
    const sure = yield* Elicitor.confirm(`Really ${colour.value}?`)
    return `${colour.value}: ${sure}`
  })
})

export const InteropTools = McpServer.tools(echo, fail, steps, slow, ask, askTwice)
