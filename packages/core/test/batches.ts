/**
 * What the tests of the executor share: batches made of tools, and what came of them.
 */
import { Effect, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import * as Executor from "@agenttool/core/Executor"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolResult from "@agenttool/core/ToolResult"

/** One call of each tool, with the ids `call_0`, `call_1`, ... */
export const jobsOf = <T extends Tool.Any>(...tools: ReadonlyArray<T | undefined>): ReadonlyArray<Executor.Job<T>> =>
  tools.map((tool, index) => ({
    tool,
    call: ToolCall.make({ id: `call_${index}`, tool: tool?.name ?? "missing" })
  }))

/** What the model reads of one call, and of each call of a batch. */
export const textOf = (final: Executor.Final<unknown>): string => ToolResult.textOf(Executor.rendered(final).output)
export const texts = (outcome: Executor.Outcome<unknown>): ReadonlyArray<string> => outcome.results.map(textOf)

export const failureOf = <E>({ result }: Executor.Final<E>): E | undefined =>
  Result.isFailure(result) ? result.failure : undefined

/** Runs an effect to its end, however long it sleeps. */
export const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

/** Tools that write down when they start and end, in virtual milliseconds. */
export const tracing = () => {
  const log: Array<string> = []
  const note = (what: string) =>
    Effect.map(
      Effect.clockWith((clock) => clock.currentTimeMillis),
      (now) => void log.push(`${now} ${what}`)
    )
  const tool = (name: string, millis: number) =>
    Tool.raw(name, {
      execute: ({ id }) =>
        note(`+${id.slice(5)}`).pipe(
          Effect.andThen(Effect.sleep(millis)),
          Effect.andThen(note(`-${id.slice(5)}`)),
          Effect.onInterrupt(() => note(`x${id.slice(5)}`)),
          Effect.as(name)
        )
    })
  return { log, note, tool }
}
