/**
 * Why a call was stopped: an annotation on the interrupt of its fiber, so that finalizers, logs and spans see it.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/**
 * - `Cancelled`: the client cancelled the request that was waiting.
 * - `Abandoned`: nobody came back with an answer in time.
 * - `SessionEnded`: the connection or session that the call belongs to is gone.
 * - `ToolRemoved`: the registration of the tool was released.
 * - `ServerClosed`: the server stops.
 * - `Superseded`: another process has taken the call over.
 * - `Diverged`: a call that was to go on here asks something else than it asked before.
 * - `JournalFailed`: what has to be recorded before the call goes on could not be.
 */
export const StopReason = Schema.Literals([
  "Cancelled",
  "Abandoned",
  "SessionEnded",
  "ToolRemoved",
  "ServerClosed",
  "Superseded",
  "Diverged",
  "JournalFailed"
])
export type StopReason = typeof StopReason.Type

/** The key of the annotation. */
export class Stopped extends Context.Service<Stopped, StopReason>()("@agenttool/server/Stopped") {}

/** Interrupts a fiber for a reason, without waiting for its finalizers. */
export const interrupt = (fiber: Fiber.Fiber<unknown, unknown>, reason: StopReason): void =>
  fiber.interruptUnsafe(undefined, Stopped.context(reason))

/**
 * The reason that a cause carries, if it carries one.
 *
 * @example
 * ```ts
 * import { StopReason } from "@agenttool/server"
 * import { Effect, Option } from "effect"
 *
 * const tool = Effect.never.pipe(
 *   Effect.onExit((exit) =>
 *     exit._tag === "Failure" && Option.contains(StopReason.of(exit.cause), "Abandoned")
 *       ? Effect.logInfo("nobody answered")
 *       : Effect.void
 *   )
 * )
 * ```
 */
export const of = (cause: Cause.Cause<unknown>): Option.Option<StopReason> =>
  Context.getOption(Cause.annotations(cause), Stopped)

/** The reason in words, as a client reads it. */
export const text = (reason: StopReason | undefined): string => {
  switch (reason) {
    case "Cancelled":
      return "cancelled"
    case "Abandoned":
      return "nobody answered its question in time"
    case "SessionEnded":
      return "its session ended"
    case "ToolRemoved":
      return "the tool was removed"
    case "ServerClosed":
      return "the server is shutting down"
    case "Superseded":
      return "another process has taken it over"
    case "Diverged":
      return "the tool has changed"
    case "JournalFailed":
      return "its journal could not be written"
    case undefined:
      return "interrupted"
  }
}
