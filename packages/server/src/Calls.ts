/**
 * The one door to running calls: start one, go on with one, interrupt some, count them.
 *
 * What goes in and comes out is plain data with schemas, so that it can travel to another process or be stored; what is
 * alive, the open request, is the {@link Attachment}. `CallsMemory` keeps the calls in memory.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as StopReason from "./StopReason.ts"
import * as Wire from "./Wire.ts"

/**
 * One of MCP's input requests, under its id: `elicit_1`, `elicit_2`, … counted in the run in the order asked, or the key
 * that the tool gave.
 */
export const InputRequest = Schema.Struct({
  id: Schema.String,
  method: Schema.Literals(["elicitation/create", "sampling/createMessage", "roots/list"]),
  params: Schema.Json
})
export interface InputRequest extends Schema.Schema.Type<typeof InputRequest> {}

/** Whom a call belongs to: a session that outlives a request, an authenticated principal, both, or nobody. */
export const Binding = Schema.Struct({
  session: Schema.optionalKey(Schema.String),
  principal: Schema.optionalKey(Schema.String)
})
export interface Binding extends Schema.Schema.Type<typeof Binding> {}

/** What a call starts from: everything that it needs of its first request. */
export const CallRequest = Schema.Struct({
  /** Looked up in the table of tools when the call starts. */
  tool: Schema.String,
  /** As received; checked where the call runs. */
  arguments: Schema.Json,
  binding: Binding,
  protocolVersion: Schema.String,
  /** What the client offers; it holds for the whole run. */
  capabilities: Schema.Json,
  /** Answers that came with the first request, by the key of the question they are for. */
  responses: Schema.Record(Schema.String, Schema.Json)
})
export interface CallRequest extends Schema.Schema.Type<typeof CallRequest> {}

/** What a client comes back with. */
export const CallReply = Schema.Struct({
  tool: Schema.String,
  state: Schema.String,
  responses: Schema.Record(Schema.String, Schema.Json),
  /** Of this request: it may no longer be able to carry a question. */
  capabilities: Schema.Json,
  binding: Binding,
  /** The id of the request, by which it is known again when it is repeated. */
  request: Schema.optionalKey(Schema.Union([Schema.String, Schema.Finite]))
})
export interface CallReply extends Schema.Schema.Type<typeof CallReply> {}

/** What a waiting request gets: the questions of a round, or the result as MCP has it. */
export const Turn = Schema.Union([
  Schema.TaggedStruct("Asked", { state: Schema.String, questions: Schema.Array(InputRequest) }),
  Schema.TaggedStruct("Done", { result: Schema.Json })
])
export type Turn = typeof Turn.Type

/**
 * The state does not lead to a waiting call. One text for all, so that nobody learns which check failed; `why` is for
 * logs. `unknown` and `foreign` are protocol errors, the rest are error results.
 */
export class NotWaiting extends Schema.TaggedError<NotWaiting>()("NotWaiting", {
  tool: Schema.String,
  why: Schema.Literals(["unknown", "foreign", "spent", "unreachable", "diverged"])
}) {
  override get message(): string {
    return Wire.notWaitingText(this.tool)
  }
}

/** No tool of that name. */
export class UnknownTool extends Schema.TaggedError<UnknownTool>()("UnknownTool", { tool: Schema.String }) {
  override get message(): string {
    return `unknown tool ${JSON.stringify(this.tool)}`
  }
}

/** The client could not be asked while its request was open. */
export class PushFailed extends Schema.TaggedError<PushFailed>()("PushFailed", { message: Schema.String }) {}

/** One update of progress, as MCP has it. */
export interface ProgressUpdate {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** The live end of one open request: never travels, never stored. */
export interface Attachment {
  readonly progress: (update: ProgressUpdate) => Effect.Effect<void>
  /** 2025 eras: a question goes out while the request is open. Where it is absent, a question ends the turn. */
  readonly ask?: ((question: InputRequest) => Effect.Effect<Schema.Json, PushFailed>) | undefined
}

/** Which calls to interrupt. */
export type Which = { readonly session: string } | { readonly state: string } | { readonly registration: string }

/** How many calls there are: with a request waiting, parked, and fibers that have not ended yet. */
export interface Count {
  readonly attached: number
  readonly parked: number
  readonly fibers: number
}

/**
 * The service.
 *
 * Interrupting `start` or `resume` while it waits is the client's cancellation: the run is interrupted as `Cancelled`.
 * `interrupt` returns how many runs it interrupted, without waiting for their finalizers.
 */
export class Calls extends Context.Service<
  Calls,
  {
    readonly start: (request: CallRequest, attachment: Attachment) => Effect.Effect<Turn, UnknownTool>
    readonly resume: (reply: CallReply, attachment: Attachment) => Effect.Effect<Turn, NotWaiting>
    readonly interrupt: (which: Which, reason: StopReason.StopReason) => Effect.Effect<number>
    /** Stops calls in good order: parked ones at once, running ones after `grace`; returns when their fibers have ended. */
    readonly drain: (which: Which | "all", reason: StopReason.StopReason, grace: Duration.Input) => Effect.Effect<void>
    readonly count: Effect.Effect<Count>
    readonly countOf: (which: Which) => Effect.Effect<Pick<Count, "attached" | "parked">>
  }
>()("@agenttool/server/Calls") {}
