/**
 * How one call of a tool runs, whoever runs it: the arguments of a supplied schema are checked, the call and a scope are
 * there, and a defect has the tool's name.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as ArgumentsCheck from "../ArgumentsCheck.ts"
import type { Any, Tool } from "../Tool.ts"
import * as ToolCall from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import type * as ToolResult from "../ToolResult.ts"

export const run = <E, R, Args, A>(
  self: Tool<E, R, Args, A>,
  call: ToolCall.Call
): Effect.Effect<ToolResult.ToolResult<A>, E | ToolError.ToolError, Exclude<R, ToolCall.ToolCall | Scope.Scope>> =>
  Effect.suspend(() => {
    const fault = faultOf(self, call)
    if (fault !== undefined) return Effect.fail(fault)
    const started = Result.try(() => self.execute(call))
    if (Result.isFailure(started)) return Effect.die(toDefect(self.name, started.failure))
    const running = started.success
    // What has ended already needs neither a scope nor the call: a refusal, a value that was at hand.
    if (Exit.isExit(running)) {
      return Exit.isSuccess(running) ? running : Exit.failCause(nameDefect(self.name, running.cause))
    }
    return Effect.catchCause(Effect.scoped(within(call, running)), (cause) =>
      Effect.failCause(nameDefect(self.name, cause))
    )
  }) as Effect.Effect<
    ToolResult.ToolResult<A>,
    E | ToolError.ToolError,
    Exclude<R, ToolCall.ToolCall | Scope.Scope> // two excludes are one, and `within` provides the call
  >

// Half the cost of `provideService`, to be used inside `scoped` only, which gives the fiber its context back.
const within = <A, E, R>(call: ToolCall.Call, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    fiber.setContext(Context.add(fiber.context, ToolCall.ToolCall, call))
    return effect
  })

// Only the defects change: a failure, or why the call was stopped, may be beside one.
const nameDefect = <E>(tool: string, cause: Cause.Cause<E>): Cause.Cause<E> =>
  Cause.hasDies(cause)
    ? Cause.fromReasons(
        cause.reasons.map((reason) =>
          Cause.isDieReason(reason)
            ? Cause.makeDieReason(toDefect(tool, reason.defect)).annotate(Cause.reasonAnnotations(reason))
            : reason
        )
      )
    : cause

const toDefect = (tool: string, defect: unknown): ToolError.ToolDefect =>
  defect instanceof ToolError.ToolDefect
    ? defect
    : new ToolError.ToolDefect({ tool, value: ToolError.defectValue(defect), cause: defect })

/** What is wrong with the arguments, as whoever runs the tool sees it. */
export const faultOf = (self: Any, call: ToolCall.Call): ToolError.InvalidArguments | undefined => {
  if (self.inner.check === "own") return undefined
  const value = call.value === undefined ? ArgumentsCheck.parse(call.arguments) : Result.succeed(call.value.json)
  if (Result.isFailure(value)) return value.failure
  if (!Predicate.isObject(value.success) || Array.isArray(value.success)) return refused("expected a JSON object")
  const prepared = self.inner.prepared()
  if (Result.isFailure(prepared)) return refused(prepared.failure.message)
  if (prepared.success._tag === "Unchecked") return undefined
  const detail = prepared.success.check(value.success)
  return detail === undefined ? undefined : refused(detail)
}

const refused = (detail: string) => new ToolError.InvalidArguments({ path: "", detail })
