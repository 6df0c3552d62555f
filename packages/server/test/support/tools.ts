/**
 * The tools that the suites call, and what they count. The same tools are served over every transport; what they have
 * acquired and released, and which calls are left, the tool `counts` answers.
 */
import { Elicitor, Progress, Tool, ToolCall } from "@agenttool/core"
import { Calls, McpServer, McpSession } from "@agenttool/server"
import { Context, Effect, Layer, Schema } from "effect"

/** What `counts` answers. Its own call is not in it. */
export interface Counts {
  readonly attached: number
  readonly parked: number
  readonly fibers: number
  /** By tools, for the time of their calls. */
  readonly acquired: number
  readonly released: number
  /** By the layer that lives in sessions. */
  readonly opened: number
  readonly closed: number
  /** How often each tool was run. */
  readonly runs: Readonly<Record<string, number>>
}

export const Where = Schema.Struct({ environment: Schema.Literals(["staging", "production"]) })
export const Sure = Schema.Struct({ confirm: Schema.Boolean })

class Counter extends Context.Service<Counter, { count: number }>()("test/Counter") {}

/** MCP's form of a choice with titles, written by hand (S-19). */
export const titled = {
  type: "object",
  properties: {
    prio: {
      type: "string",
      oneOf: [
        { const: "low", title: "Low" },
        { const: "high", title: "High" }
      ]
    }
  },
  required: ["prio"]
} as const

/** The form of older revisions: an enum with names beside it. */
export const named = {
  type: "object",
  properties: { prio: { type: "string", enum: ["low", "high"], enumNames: ["Low", "High"] } },
  required: ["prio"]
} as const

const nested = {
  type: "object",
  properties: { where: { type: "object", properties: { city: { type: "string" } } } }
} as const

/** A served set of tools and its counters. */
export const make = () => {
  const held = { acquired: 0, released: 0, opened: 0, closed: 0 }
  const runs: Record<string, number> = {}

  /** Counts a run, and holds something for as long as the call lasts: its release is the tool's finalizer. */
  const holding = (name: string) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        runs[name] = (runs[name] ?? 0) + 1
        held.acquired++
      }),
      () =>
        Effect.andThen(
          Effect.sync(() => {
            held.released++
          }),
          Effect.logInfo(`released ${name}`)
        )
    )

  const echo = Tool.make("echo", {
    description: "Gives its text back",
    parameters: Schema.Struct({ text: Schema.String }),
    execute: Effect.fn(function* ({ text }) {
      yield* holding("echo")
      return text
    })
  })

  const hold = Tool.make("hold", {
    execute: () => Effect.andThen(holding("hold"), Effect.andThen(Effect.logInfo("holding"), Effect.never))
  })

  const asking = (name: string) =>
    Tool.make(name, {
      parameters: Schema.Struct({ build: Schema.String }),
      execute: Effect.fn(function* ({ build }) {
        yield* holding(name)
        const answer = yield* Elicitor.ask({ message: `Deploy ${build} where?`, schema: Where })
        return answer.action === "accept" ? `${build} to ${answer.content.environment}` : answer.action
      })
    })

  const askTwice = Tool.make("ask_twice", {
    execute: Effect.fn(function* () {
      yield* holding("ask_twice")
      const where = yield* Elicitor.ask({ message: "Where?", schema: Where })
      if (where.action !== "accept") return `where: ${where.action}`
      const sure = yield* Elicitor.ask({ message: `Sure of ${where.content.environment}?`, schema: Sure })
      return `${where.content.environment}: ${sure.action === "accept" ? sure.content.confirm : sure.action}`
    })
  })

  const askBoth = Tool.make("ask_both", {
    execute: Effect.fn(function* () {
      yield* holding("ask_both")
      const [where, sure] = yield* Effect.all(
        [Elicitor.ask({ message: "Where?", schema: Where }), Elicitor.ask({ message: "Sure?", schema: Sure })],
        { concurrency: 2 }
      )
      return `${where.action === "accept" ? where.content.environment : where.action}, ${
        sure.action === "accept" ? sure.content.confirm : sure.action
      }`
    })
  })

  /** Asks as often as it is told, and says how its last question went. */
  const askMany = Tool.make("ask_many", {
    parameters: Schema.Struct({ times: Schema.Int }),
    execute: Effect.fn(function* ({ times }) {
      yield* holding("ask_many")
      const asked = Effect.result(Elicitor.ask({ message: "Again?", schema: Sure }))
      for (let time = 1; time <= times; time++) {
        const answer = yield* asked
        if (answer._tag === "Failure") return `${time}: ${answer.failure.message}`
        if (answer.success.action !== "accept") return `${time}: ${answer.success.action}`
      }
      return `answered ${times} times`
    })
  })

  /** Asks under a key of its own, one question after another. */
  const askKeyed = Tool.make("ask_keyed", {
    parameters: Schema.Struct({ keys: Schema.Array(Schema.String), together: Schema.optionalKey(Schema.Boolean) }),
    execute: Effect.fn(function* ({ keys, together }) {
      yield* holding("ask_keyed")
      const answers = yield* Effect.forEach(
        keys,
        (key) =>
          Effect.match(Elicitor.ask({ message: `${key}?`, schema: Where, key }), {
            onSuccess: (answer) => (answer.action === "accept" ? answer.content.environment : answer.action),
            onFailure: (error) => error.message
          }),
        { concurrency: together === true ? "unbounded" : 1 }
      )
      return answers.join("; ")
    })
  })

  /** Asks with a schema written by hand, by url, or with none, and says what it got. */
  const askRaw = Tool.make("ask_raw", {
    parameters: Schema.Struct({ kind: Schema.Literals(["titled", "named", "nested", "none", "url"]) }),
    execute: Effect.fn(function* ({ kind }) {
      yield* holding("ask_raw")
      const schemas = { titled, named, nested, none: undefined, url: titled }
      const url = kind === "url" ? "https://example.com/pay" : undefined
      return yield* Effect.match(
        Elicitor.askRaw({
          message: kind,
          ...(schemas[kind] === undefined ? {} : { schema: schemas[kind] }),
          ...(url === undefined ? {} : { url })
        }),
        {
          onSuccess: (answer) => JSON.stringify(answer),
          onFailure: (error) => `failed: ${error.message}`
        }
      )
    })
  })

  /** Does without an answer (S-18). */
  const askOrSkip = Tool.make("ask_or_skip", {
    execute: Effect.fn(function* () {
      yield* holding("ask_or_skip")
      const answer = yield* Elicitor.ask({ message: "Which?", schema: Where })
      return answer.action === "accept" ? "asked" : "skipped"
    })
  })

  /** Lets the failure of its asking through. */
  const askPlainly = Tool.raw("ask_plainly", {
    execute: Effect.fn(function* () {
      yield* holding("ask_plainly")
      const answer = yield* Elicitor.askRaw({ message: "Prio?", schema: titled })
      return JSON.stringify(answer)
    })
  })

  const askThenHold = Tool.make("ask_then_hold", {
    execute: Effect.fn(function* () {
      yield* holding("ask_then_hold")
      yield* Elicitor.ask({ message: "Go on?", schema: Sure })
      return yield* Effect.never
    })
  })

  const slow = Tool.make("slow", {
    parameters: Schema.Struct({ millis: Schema.Int }),
    execute: ({ millis }) => Effect.andThen(holding("slow"), Effect.as(Effect.sleep(millis), "slow"))
  })

  const steps = Tool.make("steps", {
    parameters: Schema.Struct({ numbered: Schema.Boolean }),
    execute: Effect.fn(function* ({ numbered }) {
      yield* holding("steps")
      for (let step = 1; step <= 10; step++) {
        yield* Progress.report(numbered ? { progress: step, total: 10, message: `step ${step}` } : `step ${step}`)
      }
      return "ten steps"
    })
  })

  const mixedSteps = Tool.make("mixed_steps", {
    execute: Effect.fn(function* () {
      yield* holding("mixed_steps")
      yield* Progress.report({ progress: 1, total: 2 })
      yield* Progress.report("text")
      yield* Progress.report({ progress: 2, message: "falls behind" })
      yield* Progress.report({ progress: 0.5, total: 0 })
      return "mixed"
    })
  })

  const stepsAround = Tool.make("steps_around", {
    execute: Effect.fn(function* () {
      yield* holding("steps_around")
      yield* Progress.report("before")
      const answer = yield* Elicitor.ask({ message: "Go on?", schema: Sure })
      yield* Progress.report("after")
      return answer.action
    })
  })

  const fails = Tool.make("fails", {
    execute: () => Effect.andThen(holding("fails"), Effect.fail("no such user"))
  })

  const dies = Tool.make("dies", {
    execute: () =>
      Effect.andThen(holding("dies"), Effect.die(new Error("secret value", { cause: new Error("secret cause") })))
  })

  const noisy = Tool.make("noisy", {
    execute: Effect.fn(function* () {
      yield* holding("noisy")
      console.log("noise of console.log")
      process.stdout.write("noise of process.stdout\n")
      yield* Effect.logInfo("noise of Effect.log")
      return "made noise"
    })
  })

  const count = Tool.make("count", {
    execute: Effect.fn(function* () {
      const counter = yield* Counter
      const session = yield* McpSession.current
      return JSON.stringify({ count: ++counter.count, id: session.id, lifetime: session.lifetime })
    })
  }).pipe(
    McpSession.provide(
      Layer.effect(
        Counter,
        Effect.acquireRelease(
          Effect.sync(() => {
            held.opened++
            return { count: 0 }
          }),
          () =>
            // Takes a while, as closing a file or a connection does.
            Effect.sleep("20 millis").pipe(
              Effect.andThen(
                Effect.sync(() => {
                  held.closed++
                })
              ),
              Effect.andThen(Effect.logInfo("closed the counter"))
            )
        )
      )
    )
  )

  const number = Tool.make("number", {
    parameters: Schema.Struct({ n: Schema.Finite }),
    execute: ({ n }) => Effect.as(holding("number"), String(n))
  })

  const nothing = Tool.make("nothing", { execute: () => Effect.as(holding("nothing"), "ran") })

  const optional = Tool.make("optional", {
    parameters: Schema.Struct({ name: Schema.optionalKey(Schema.String) }),
    execute: ({ name }) => Effect.as(holding("optional"), `ran ${name ?? "without"}`)
  })

  const call = Tool.raw("call", {
    parameters: { type: "object", properties: { a: { type: "integer", default: 7 } }, required: ["b"] },
    execute: Effect.fn(function* () {
      yield* holding("call")
      const { arguments: text, id, idempotencyKey, tool } = yield* ToolCall.current
      return JSON.stringify({ id, tool, text, idempotencyKey: idempotencyKey ?? "none" })
    })
  })

  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  const odd = Tool.make("odd", {
    parameters: Schema.Struct({ kind: Schema.Literals(["bigint", "cyclic", "undefined"]) }),
    execute: ({ kind }): Effect.Effect<unknown> =>
      Effect.succeed(kind === "bigint" ? { n: 10n } : kind === "cyclic" ? cyclic : undefined)
  })

  const counts = Tool.make("counts", {
    execute: Effect.fn(function* () {
      // A fiber is counted once it has been put among the others, which is after its first step.
      yield* Effect.yieldNow
      const { attached, fibers, parked } = yield* (yield* Calls.Calls).count
      const found: Counts = { attached: attached - 1, parked, fibers: fibers - 1, ...held, runs }
      return found
    })
  })

  return {
    layer: McpServer.tools(
      echo,
      hold,
      asking("ask"),
      asking("ask_other"),
      askTwice,
      askBoth,
      askMany,
      askKeyed,
      askRaw,
      askOrSkip,
      askPlainly,
      askThenHold,
      slow,
      steps,
      mixedSteps,
      stepsAround,
      fails,
      dies,
      noisy,
      count,
      number,
      nothing,
      optional,
      call,
      odd,
      counts
    )
  }
}

/** The names, in the order in which they are listed. */
export const names = [
  "echo",
  "hold",
  "ask",
  "ask_other",
  "ask_twice",
  "ask_both",
  "ask_many",
  "ask_keyed",
  "ask_raw",
  "ask_or_skip",
  "ask_plainly",
  "ask_then_hold",
  "slow",
  "steps",
  "mixed_steps",
  "steps_around",
  "fails",
  "dies",
  "noisy",
  "count",
  "number",
  "nothing",
  "optional",
  "call",
  "odd",
  "counts"
]
