/**
 * Runs the calls of one model response as a batch (C130–C154): along its `Plan`, within a bound, each call in a fiber of
 * its own, with exactly one final event for each.
 *
 * `run` is for a harness that wants the outcome, `stream` for one that shows progress, `start` for one that may cancel and
 * still wants every result. It runs what it is given once, decides about no call, and closes no tool.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ExecutorError from "./ExecutorError.ts"
import * as batch from "./internal/batch.ts"
import type * as Plan from "./Plan.ts"
import type * as Recorder from "./Recorder.ts"
import * as Tool from "./Tool.ts"
import * as Toolbox from "./Toolbox.ts"
import * as ToolCall from "./ToolCall.ts"
import * as ToolError from "./ToolError.ts"
import * as ToolResult from "./ToolResult.ts"

// ---------------------------------------------------------------------------------------------------------------------
// Calls and jobs
// ---------------------------------------------------------------------------------------------------------------------

/** Called with each update of a call, on the consumer's side, right before the event is given out (C138). */
export type OnUpdate = (update: ToolResult.ToolResult) => Effect.Effect<void>

/**
 * A call as a model wrote it: `arguments` is the JSON text of the arguments object, `{}` when absent. A harness adds the
 * `idempotencyKey`: not the id, and the same for another attempt at the same call (C88, C89).
 */
export interface CallRequest {
  readonly id: string
  readonly name: string
  readonly arguments?: string | undefined
  readonly idempotencyKey?: string | undefined
  readonly onUpdate?: OnUpdate | undefined
}

/** One call of a batch with the tool that it is for; without a tool it fails (C130, C146). */
export interface Job<out T extends Tool.Any = Tool.Any> {
  readonly tool: T | undefined
  readonly call: ToolCall.Call
  readonly onUpdate?: OnUpdate | undefined
}

/** The tools of jobs, as a union. */
export type ToolOf<J extends Job> = Exclude<J["tool"], undefined>

/** An Open Responses `function_call` item, as far as it is read. */
export interface FunctionCall {
  readonly call_id: string
  readonly name: string
  readonly arguments: string
}

/** The call of a `function_call` item. */
export const fromFunctionCall = (item: FunctionCall): CallRequest => ({
  id: item.call_id,
  name: item.name,
  arguments: item.arguments
})

/** The jobs of a model's calls: each with the first tool of its name, or none (C13). */
export const jobs = <T extends Tool.Any>(
  tools: Toolbox.Tools<T>,
  calls: ReadonlyArray<CallRequest>
): ReadonlyArray<Job<T>> =>
  calls.map((call) => ({
    tool: Toolbox.lookup(tools, call.name),
    call: ToolCall.make({
      id: call.id,
      tool: call.name,
      arguments: call.arguments,
      idempotencyKey: call.idempotencyKey
    }),
    onUpdate: call.onUpdate
  }))

// ---------------------------------------------------------------------------------------------------------------------
// Settings
// ---------------------------------------------------------------------------------------------------------------------

/** A job that is about to run. */
export interface Starting {
  readonly index: number
  readonly tool: Tool.Any
  readonly call: ToolCall.Call
}

/**
 * Called right before a tool is, once the job has its place and its turn (C142–C144). A failure refuses the call: it is the
 * call's failure, as it is. The call, its progress and its recorder are on the context.
 */
export type OnStart<E, R> = (job: Starting) => Effect.Effect<void, E, R>

/**
 * What every batch goes by unless its own options say otherwise. `maxParallel` and `sequential`: see `Plan.Options`.
 *
 * - `recorder`: takes the place of one that is on the context. Default: that one stays (C145).
 * - `onStart`: default none.
 */
export interface Settings extends Plan.Options {
  readonly recorder?: Recorder.RecorderService | undefined
  readonly onStart?: OnStart<ToolError.ToolFailure, ToolCall.ToolCall> | undefined
}

/** The reference that holds the settings. */
export const Executor: Context.Reference<Settings> = Context.Reference<Settings>("@agenttool/core/Executor", {
  defaultValue: () => ({})
})

/**
 * Sets the settings for everything that runs under it.
 *
 * @example
 * ```ts
 * import { Executor, ToolError } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const layer = Executor.layer({
 *   maxParallel: 4,
 *   onStart: ({ call }) =>
 *     call.tool === "drop" ? Effect.fail(new ToolError.ToolFailure({ message: "not today" })) : Effect.void
 * })
 * ```
 */
export const layer = (settings: Settings): Layer.Layer<never> => Layer.succeed(Executor, settings)

/**
 * What one batch goes by: the settings, a hook whose failures and requirements show in the batch's types, and `cancelWhen`,
 * which cancels the batch when it ends (C149). Every call still has a result then.
 */
export interface Options<E = never, R = never> extends Omit<Settings, "onStart"> {
  readonly onStart?: OnStart<E, R> | undefined
  readonly cancelWhen?: Effect.Effect<unknown, unknown> | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// Events and outcome
// ---------------------------------------------------------------------------------------------------------------------

/** An update of a running call. `index` is the position of the call in the batch. */
export interface Progress {
  readonly _tag: "Progress"
  readonly index: number
  readonly call: ToolCall.Call
  readonly update: ToolResult.ToolResult
}

/** How a call ended: exactly one for each (C137). */
export interface Final<out E> {
  readonly _tag: "Final"
  readonly index: number
  readonly call: ToolCall.Call
  readonly tool: Tool.Any | undefined
  readonly result: Result.Result<ToolResult.ToolResult, E>
}

/** What a batch yields. Finals come in the order in which the calls end (C139). */
export type Event<E> = Progress | Final<E>

/** What a call of these tools can fail with. `E` is that of the start hook. */
export type Failure<T extends Tool.Any, E = never> =
  | (T extends Tool.Tool<infer ToolE, infer _R, infer _Args, infer _A> ? ToolE : never)
  | ToolError.ToolError
  | ToolError.ToolDefect
  | ToolError.ToolFailure
  | ExecutorError.ExecutorError
  | E

/** What a batch needs: what its tools and its start hook do, without what the executor provides. */
export type Requirements<T extends Tool.Any, R = never> = Tool.Requirements<T> | Exclude<R, ToolCall.ToolCall>

/** What the results of a batch ask of the harness (C154). `partial` is not a termination. */
export type Termination = "terminate" | "partial" | "continue"

/** How a batch ended: its finals in the model's order. */
export interface Outcome<out E> {
  readonly results: ReadonlyArray<Final<E>>
  readonly termination: Termination
}

/** The outcome of a batch whose events somebody collected: any order, progress is skipped. */
export const outcome = <E>(events: Iterable<Event<E>>): Outcome<E> => {
  const results: Array<Final<E>> = []
  for (const event of events) if (event._tag === "Final") results.push(event)
  results.sort((a, b) => a.index - b.index)
  return { results, termination: termination(results) }
}

/** What these results ask for together: `terminate` only if all of them do, failed calls included. */
export const termination = (results: ReadonlyArray<Final<unknown>>): Termination => {
  const flags = results.map(({ result }) =>
    Result.isSuccess(result) ? result.success.terminate === true : ToolError.terminateOf(result.failure)
  )
  if (!flags.includes(true)) return "continue"
  return flags.includes(false) ? "partial" : "terminate"
}

/**
 * What the model is shown of a call: its result, or a fresh one with the text `Error: MESSAGE` that keeps the failure's
 * details and wish to stop (C103, C104).
 */
export const rendered = ({ result, tool }: Final<unknown>): ToolResult.ToolResult => {
  if (Result.isSuccess(result)) return result.success
  const { failure } = result
  const message = tool === undefined ? ToolError.messageOf(failure) : Tool.failureText(tool, failure)
  const details = ToolError.detailsOf(failure)
  return ToolResult.text(`Error: ${message}`, {
    ...(details === undefined ? {} : { details }),
    ...(ToolError.terminateOf(failure) ? { terminate: true } : {})
  })
}

/** An Open Responses `function_call_output` item. */
export interface FunctionCallOutput {
  readonly type: "function_call_output"
  readonly call_id: string
  readonly output: ToolResult.Output
}

/** What the model gets back: one item per call, in the model's order (C95, C140). */
export const outputs = (self: Outcome<unknown>): ReadonlyArray<FunctionCallOutput> =>
  self.results.map((final) => ({
    type: "function_call_output",
    call_id: final.call.id,
    output: rendered(final).output
  }))

// ---------------------------------------------------------------------------------------------------------------------
// Running
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A batch that runs.
 *
 * - `events`: for one consumer, which holds up the batch while it does not take them: a call keeps its place until its
 *   final event is taken, and a tool waits once 64 events are not (C136).
 * - `cancel`: interrupts what runs, and lets nothing start. Returns at once: the batch is over when its events are, and
 *   each call has its final event (C149, C150).
 */
export interface Batch<out E> {
  readonly events: Stream.Stream<Event<E>>
  readonly cancel: Effect.Effect<void>
}

/**
 * Starts a batch. Closing the scope interrupts what still runs, and waits until it has stopped (C151).
 *
 * @example
 * ```ts
 * import { Executor, Tool } from "@agenttool/core"
 * import { Effect, Stream } from "effect"
 *
 * const slow = Tool.raw("slow", { execute: () => Effect.as(Effect.sleep("1 minute"), "done") })
 *
 * const program = Effect.gen(function* () {
 *   const batch = yield* Executor.start(Executor.jobs([slow], [{ id: "call_1", name: "slow" }]))
 *   yield* Effect.forkScoped(Effect.delay(batch.cancel, "1 second"))
 *   return Executor.outcome(yield* Stream.runCollect(batch.events)) // the call was cancelled
 * }).pipe(Effect.scoped)
 * ```
 */
export const start = <J extends Job, E = never, R = never>(
  jobs: ReadonlyArray<J>,
  options?: Options<E, R>
): Effect.Effect<Batch<Failure<ToolOf<J>, E>>, never, Requirements<ToolOf<J>, R> | Scope.Scope> =>
  Effect.acquireRelease(open(jobs, options, false), (running) => running.close).pipe(
    Effect.map((running) => ({
      events: Stream.fromPull(Effect.succeed(Effect.map(running.take, (event) => [event] as const))),
      cancel: Effect.sync(running.cancel)
    }))
  )

/**
 * Runs a batch as a stream of its events, which it never fails. Breaking off the stream interrupts the calls that still
 * run, and waits until they have stopped (C151).
 *
 * @example
 * ```ts
 * import { Executor, Tool, ToolResult } from "@agenttool/core"
 * import { Console, Effect, Stream } from "effect"
 *
 * const echo = Tool.raw("echo", { execute: (call) => Effect.succeed(call.arguments) })
 *
 * const program = Executor.stream(Executor.jobs([echo], [{ id: "call_1", name: "echo" }])).pipe(
 *   Stream.runForEach((event) =>
 *     event._tag === "Progress"
 *       ? Console.error(ToolResult.textOf(event.update.output))
 *       : Console.error(`${event.call.id} ended`)
 *   )
 * )
 * ```
 */
export const stream = <J extends Job, E = never, R = never>(
  jobs: ReadonlyArray<J>,
  options?: Options<E, R>
): Stream.Stream<Event<Failure<ToolOf<J>, E>>, never, Requirements<ToolOf<J>, R>> =>
  Stream.unwrap(Effect.map(start(jobs, options), (running) => running.events))

/**
 * Runs a model's calls and collects what became of them. Interrupting it interrupts the calls, and waits until they have
 * stopped; to stop a batch and still have every result, use `cancelWhen`.
 *
 * @example
 * ```ts
 * import { Executor, Tool } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const echo = Tool.raw("echo", { execute: (call) => Effect.succeed(call.arguments) })
 *
 * const program = Executor.run([echo], [{ id: "call_1", name: "echo", arguments: `{"a":1}` }]).pipe(
 *   Effect.map(Executor.outputs)
 * ) // [{ type: "function_call_output", call_id: "call_1", output: `{"a":1}` }]
 * ```
 */
export const run = <T extends Tool.Any, E = never, R = never>(
  tools: Toolbox.Tools<T>,
  calls: ReadonlyArray<CallRequest>,
  options?: Options<E, R>
): Effect.Effect<Outcome<Failure<T, E>>, never, Requirements<T, R>> => runJobs(jobs(tools, calls), options)

/** As {@link run}, of jobs that the harness put together itself. */
export const runJobs = <J extends Job, E = never, R = never>(
  jobs: ReadonlyArray<J>,
  options?: Options<E, R>
): Effect.Effect<Outcome<Failure<ToolOf<J>, E>>, never, Requirements<ToolOf<J>, R>> =>
  Effect.flatMap(open(jobs, options, true), (running) => {
    const finals: Array<Final<Failure<ToolOf<J>, E>>> = []
    const collected = Effect.whileLoop({
      while: () => finals.length < jobs.length,
      body: () => running.take,
      step: (event) => {
        if (event._tag === "Final") finals.push(event)
      }
    })
    return Pull.catchDone(collected, () => Effect.void).pipe(
      Effect.onExit(() => running.close),
      Effect.map(() => outcome(finals))
    )
  })

interface Opened<out F> extends Omit<batch.Batch, "take"> {
  readonly take: Pull.Pull<Event<F>>
}

const open = <J extends Job, E, R>(
  jobs: ReadonlyArray<J>,
  options: Options<E, R> | undefined,
  eager: boolean
): Effect.Effect<Opened<Failure<ToolOf<J>, E>>, never, Requirements<ToolOf<J>, R>> =>
  Effect.contextWith((context: Context.Context<Requirements<ToolOf<J>, R>>) => {
    const settings = Context.get(context, Executor)
    const chosen: Options<unknown, unknown> = {
      maxParallel: options?.maxParallel ?? settings.maxParallel,
      sequential: options?.sequential ?? settings.sequential,
      recorder: options?.recorder ?? settings.recorder,
      onStart: options?.onStart ?? settings.onStart,
      cancelWhen: options?.cancelWhen
    }
    // Calls fail with what their tools, the hook and the executor fail with: that is what `Failure` says.
    return Effect.sync(() => batch.start(jobs, chosen, context, eager) as Opened<Failure<ToolOf<J>, E>>)
  })

// ---------------------------------------------------------------------------------------------------------------------
// Running a call again
// ---------------------------------------------------------------------------------------------------------------------

/** Why a call may run again, and with which key. */
export type Replayable = { readonly _tag: "Safe" } | { readonly _tag: "Keyed"; readonly idempotencyKey: string }

/**
 * Whether a call that may already have run may run again (C159): `Safe`, or `Keyed` with the key of its first attempt and
 * no other. Fails with what the call is then to be completed with. It runs nothing, and does not say whether another
 * attempt is worth it (C160).
 *
 * @example
 * ```ts
 * import { Executor, Tool, ToolCall } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const read = Tool.raw("read", { execute: () => Effect.succeed("") }).pipe(Tool.replay("safe"))
 *
 * const program = Executor.mayReplay(read, ToolCall.make({ id: "call_1", tool: "read" })) // { _tag: "Safe" }
 * ```
 */
export const mayReplay = <E, R, Args, A>(
  tool: Tool.Tool<E, R, Args, A>,
  call: ToolCall.Call
): Effect.Effect<Replayable, ExecutorError.OutcomeUnknown, R> =>
  Effect.flatMap(
    Tool.replayOf(tool, call.arguments),
    (answer): Effect.Effect<Replayable, ExecutorError.OutcomeUnknown> => {
      const { idempotencyKey } = call
      if (answer === "safe") return Effect.succeed({ _tag: "Safe" })
      return answer === "keyed" && idempotencyKey !== undefined && idempotencyKey !== ""
        ? Effect.succeed({ _tag: "Keyed", idempotencyKey })
        : Effect.fail(new ExecutorError.OutcomeUnknown({ call: call.id, tool: tool.name }))
    }
  )
