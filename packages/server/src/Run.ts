/**
 * A run as `CallsMemory` keeps it: one execution of a tool that may outlive its request, and what can be read off it.
 */
import type * as ToolCall from "@agenttool/core/ToolCall"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type * as Asking from "./Asking.ts"
import type * as CallJournal from "./CallJournal.ts"
import type * as Calls from "./Calls.ts"
import * as McpSession from "./McpSession.ts"
import type * as Registry from "./Registry.ts"
import type * as RunJournal from "./RunJournal.ts"
import type * as RunState from "./RunState.ts"
import * as StopReason from "./StopReason.ts"
import type * as Telemetry from "./Telemetry.ts"
import * as Wire from "./Wire.ts"

/** A run: what is fixed, what the state machine says, and what is alive. */
export interface Run {
  readonly id: string
  readonly request: Calls.CallRequest
  readonly served: Registry.Served
  readonly call: ToolCall.Call
  readonly journal: RunJournal.RunJournal | undefined
  readonly replies: Map<string, Deferred.Deferred<Asking.Reply, Asking.Refused>>
  readonly early: Map<string, Schema.Json>
  readonly events: Array<RunState.Event>
  state: RunState.RunState
  busy: boolean
  asked: number
  updates: number
  stopping: StopReason.StopReason | undefined
  /** Whether it has a place among the running calls. */
  placed: boolean
  outcome: Telemetry.Outcome
  parkedAt: number
  waitedMillis: number
  /** The state that was spent last: its turn may be asked for again. */
  spent: string | undefined
  /** What is to be delivered at the first questions without a recorded answer: the reply that has revived the run. */
  reviving: Calls.CallReply | undefined
  /** What the client offers on the request that has started or revived the run. */
  readonly offered: Schema.Json
  attachment: Calls.Attachment | undefined
  waiter: Deferred.Deferred<Calls.Turn> | undefined
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** Why it is to be interrupted, should that be known before its fiber is: a fiber starts before it is given out. */
  interrupted: StopReason.StopReason | undefined
}

// A bound per session falls on the session where there is one, else on the principal.
export const ownerOf = ({ principal, session }: Calls.Binding): string =>
  session !== undefined ? `session ${session}` : principal !== undefined ? `principal ${principal}` : ""

export const infoOf = (
  { binding, protocolVersion, tool }: Calls.CallRequest,
  id: string,
  around: Context.Context<never>
): Telemetry.CallInfo => ({
  tool,
  id,
  session: Option.getOrUndefined(Context.getOption(around, McpSession.McpSession))?.id ?? "",
  principal: binding.principal,
  protocolVersion
})

export const isWaiting = ({ state: { phase } }: Run, state: string): boolean =>
  (phase._tag === "Parked" || phase._tag === "Finished") && phase.state === state

// Another process has this run, or it can go on nowhere: its client is told to call again.
export const goesOnElsewhere: ReadonlySet<StopReason.StopReason> = new Set(["Superseded", "Diverged"])

/** Whether the journal of a run that ended so is left for another process to go on with. */
export const goesOn = (exit: Exit.Exit<unknown, unknown>): boolean => {
  if (Exit.isSuccess(exit) || !Cause.hasInterruptsOnly(exit.cause)) return false
  const reason = Option.getOrUndefined(StopReason.of(exit.cause))
  return reason === undefined || leavesJournal.has(reason)
}

const leavesJournal: ReadonlySet<StopReason.StopReason> = new Set([
  "ToolRemoved",
  "ServerClosed",
  "Superseded",
  "JournalFailed"
])

// The run has ended, whatever becomes of its journal.
export const endJournal = (journal: RunJournal.RunJournal, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Effect.catchCause(journal.end(goesOn(exit)), (cause) =>
    Effect.logWarning("the journal of a call that has ended could not be closed", cause)
  )

export const roundsOf = ({ entries }: CallJournal.Past): number => entries.filter(({ _tag }) => _tag === "Round").length

export const isLegacy = (protocolVersion: string): boolean => protocolVersion < Wire.firstModernVersion

export const countOf = (runs: ReadonlyArray<Run>): Pick<Calls.Count, "attached" | "parked"> => {
  const attached = runs.filter((run) => run.state.phase._tag === "Attached").length
  return { attached, parked: runs.length - attached }
}

/** Whether two bindings are of the same session and principal. */
export const sameBinding = (left: Calls.Binding, right: Calls.Binding): boolean =>
  left.session === right.session && left.principal === right.principal
