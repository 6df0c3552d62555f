/**
 * A tool that asks its user twice in the middle of its work, and holds something all the while: the lock of the build is
 * released however the call ends, answered, declined, abandoned or cancelled.
 */
import { Elicitor, Progress, Tool, ToolRecord, ToolResult } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { Clock, Effect, Predicate, Schema } from "effect"

const lock = (build: string) =>
  Effect.acquireRelease(Effect.logInfo(`locked ${build}`), () => Effect.logInfo(`unlocked ${build}`))

/** Says in the log which fiber waited, and how long: the very fiber that goes on. */
const waiting = <A, E, R>(question: string, ask: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const asked = yield* Clock.currentTimeMillis
    yield* Effect.logInfo(`fiber ${yield* Effect.fiberId} asks: ${question}`)
    const answer = yield* ask
    const waited = (yield* Clock.currentTimeMillis) - asked
    yield* Effect.logInfo(`fiber ${yield* Effect.fiberId} goes on after ${waited} ms`)
    return answer
  })

const nothing = "Nothing was deployed."

export const deploy = Tool.make("deploy", {
  description: "Deploys a build to an environment, after the user has confirmed it.",
  parameters: Schema.Struct({ build: Schema.String.annotate({ description: "The build to deploy" }) }),
  execute: Effect.fn("deploy")(function* ({ build }) {
    yield* lock(build)
    const where = yield* waiting(
      "where?",
      Elicitor.ask({
        message: `Deploy ${build} where?`,
        schema: Schema.Struct({ environment: Schema.Literals(["staging", "production"]) })
      })
    )
    if (where.action !== "accept") return nothing
    const { environment } = where.content
    const sure = yield* waiting(
      "sure?",
      Elicitor.ask({
        message: `Deploy ${build} to ${environment}?`,
        schema: Schema.Struct({ confirm: Schema.Boolean })
      })
    )
    if (sure.action !== "accept" || !sure.content.confirm) return nothing
    for (const [step, message] of ["uploading", "switching", "checking"].entries()) {
      yield* Progress.report({ message, progress: step + 1, total: 3 })
      yield* Effect.sleep("50 millis")
    }
    // The text is for the model; the record stays with whoever runs the tool.
    return ToolResult.text(`Deployed ${build} to ${environment}.`, {
      details: ToolRecord.make("deployer:deployment", { build, environment })
    })
  })
}).pipe(
  Tool.sequential,
  Tool.annotate({ destructive: true }),
  // What a call would do, asked for before it is allowed to run.
  Tool.facts((args) =>
    Effect.succeed({
      calls: [
        {
          tool: "",
          text: `replaces what is deployed by ${Predicate.hasProperty(args, "build") ? args.build : "a build"}`
        }
      ]
    })
  )
)

export const Tools = McpServer.tools(deploy)
