/**
 * The method `execution/facts`: what calls state about themselves, asked for without running anything (M75–M81).
 */
import type * as CoreFacts from "@agenttool/core/Facts"
import * as Tool from "@agenttool/core/Tool"
import * as ToolError from "@agenttool/core/ToolError"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Properties from "@agenttool/core/Properties"
import * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import type * as Registry from "./Registry.ts"
import * as Wire from "./Wire.ts"

/** The parameters of the method. Absent arguments are `{}`; they are not validated: the claim sees what was sent. */
export const Params = Schema.Struct({
  calls: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.Struct({ name: Schema.String, arguments: Schema.optionalKey(Schema.Unknown) })))
  )
})

/** The answers, one per call, in the order asked. */
export const Result = Schema.Struct({ results: Schema.Array(Schema.Unknown) })

/** One answer (M76). `calls` is `null` for the call itself, `[]` for nothing that can be stated. */
export interface Answer {
  readonly error?: string
  readonly facts?: {
    readonly calls: ReadonlyArray<{
      readonly tool: string
      readonly args?: Schema.JsonObject
      readonly text?: string
    }> | null
    readonly rewrite?: Schema.JsonObject
  }
  readonly replay: "safe" | "unknown"
}

/** Answers for one call. Never runs the tool. */
export const answer = (
  served: Registry.Served | undefined,
  name: string,
  args: unknown,
  contextOf: (served: Registry.Served) => Context.Context<never>
): Effect.Effect<Answer> => {
  if (served === undefined) return Effect.succeed({ error: `unknown tool ${ToolError.quote(name)}`, replay: "unknown" })
  const raw = args === undefined || args === "" ? "{}" : JSON.stringify(args)
  // What a claim needs was in the context of its registration.
  const tool = served.tool as Tool.Tool<unknown, never, never, unknown>
  const claim = Effect.exit(Tool.factsOf(tool, raw))
  const replay = Effect.exit(Tool.replayOf(tool, raw))
  return Effect.provideContext(
    Effect.flatMap(claim, (claimed) =>
      Effect.flatMap(replay, (replayed) =>
        Effect.flatMap(interrupted(claimed, replayed), () => toAnswer(served.tool, claimed, replayed))
      )
    ),
    contextOf(served)
  )
}

// An interrupt of the request is not an answer: it must go on to interrupt this.
const interrupted = (...exits: ReadonlyArray<Exit.Exit<unknown>>): Effect.Effect<void> => {
  const stopped = exits.find((exit) => Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
  return stopped === undefined ? Effect.void : Effect.asVoid(stopped)
}

const toAnswer = (
  tool: Tool.Any,
  claimed: Exit.Exit<CoreFacts.Claim>,
  replayed: Exit.Exit<Properties.Replay>
): Effect.Effect<Answer> => {
  const replay = Exit.isSuccess(replayed) && replayed.value === "safe" ? "safe" : "unknown"
  if (Exit.isFailure(claimed)) {
    const reference = randomBytes(4).toString("hex")
    const error = Wire.defectText(tool.name, reference)
    return Effect.as(Effect.logError(error, claimed.cause), { error, replay })
  }
  const claim = claimed.value
  if (!claim.claims) return Effect.succeed({ replay })
  if ("error" in claim) {
    return Effect.succeed({ error: Tool.failureText(tool, claim.error) || "facts claim failed", replay })
  }
  const { calls, rewrite } = claim.facts
  return Effect.succeed({
    facts: { calls: calls === undefined ? null : calls.map(factCall), ...(rewrite === undefined ? {} : { rewrite }) },
    replay
  })
}

const factCall = (call: CoreFacts.FactCall) => ({
  tool: call.tool,
  ...(call.args === undefined ? {} : { args: call.args }),
  ...(call.text === undefined || call.text === "" ? {} : { text: call.text })
})
