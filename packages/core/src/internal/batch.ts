/**
 * One running batch: which call may start, and the events that its consumer has not taken yet.
 *
 * Everything that decides is synchronous, so that no interrupt can come between taking a final event and giving up the
 * place of its call.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type { Event, Final, Job, Options } from "../Executor.ts"
import * as ExecutorError from "../ExecutorError.ts"
import * as Plan from "../Plan.ts"
import * as Progress from "../Progress.ts"
import * as Recorder from "../Recorder.ts"
import * as Tool from "../Tool.ts"
import * as ToolCall from "../ToolCall.ts"
import * as ToolError from "../ToolError.ts"
import type * as ToolResult from "../ToolResult.ts"

/** A tool that reports faster than the consumer takes is held up at this many events. */
const backlog = 64

/** What a consumer takes from. The types of the calls' failures are known to `Executor` only. */
export interface Batch {
  /** The next event, for one consumer. */
  readonly take: Pull.Pull<Event<unknown>>
  readonly cancel: () => void
  /** Interrupts what runs and waits for it. Nothing is given out afterwards. */
  readonly close: Effect.Effect<void>
}

/** A call in the batch, and what became of it. */
interface Entry {
  readonly index: number
  readonly job: Job
  state: "waiting" | "placed" | "called" | "ended"
  fiber: Fiber.Fiber<ToolResult.ToolResult, unknown> | undefined
}

/**
 * Starts a batch. `eager`: the calls start at once, and not when the scheduler comes to them.
 */
export const start = (
  jobs: ReadonlyArray<Job>,
  options: Options<unknown, unknown>,
  services: Context.Context<never>,
  eager: boolean
): Batch => {
  const { onStart, recorder } = options
  const entries = jobs.map((job, index): Entry => ({ index, job, state: "waiting", fiber: undefined }))
  const turns = makeTurns(
    Plan.segments(
      jobs.map((job) => job.tool),
      options
    ),
    Plan.boundOf(options.maxParallel)
  )
  const events: Array<Event<unknown>> = []
  let wake: (() => void) | undefined
  let drained: Latch.Latch | undefined
  let untaken = jobs.length
  let cancelled = false
  let closed = false

  const base = recorder === undefined ? services : Context.add(services, Recorder.Recorder, recorder)

  const put = (event: Event<unknown>): void => {
    if (closed) return
    events.push(event)
    wake?.()
  }

  const end = (entry: Entry, result: Final<unknown>["result"]): void => {
    if (entry.state === "ended") return
    entry.state = "ended"
    entry.fiber = undefined
    put({ _tag: "Final", index: entry.index, call: entry.job.call, tool: entry.job.tool, result })
  }

  const progressOf = (entry: Entry): Progress.ProgressService => ({
    update: (update) =>
      Effect.suspend(() => {
        if (closed || entry.state === "ended") return Effect.void
        put({ _tag: "Progress", index: entry.index, call: entry.job.call, update })
        if (cancelled || events.length < backlog) return Effect.void
        drained ??= Latch.makeUnsafe()
        drained.closeUnsafe()
        return drained.await
      })
  })

  const run = (entry: Entry, tool: Tool.Any): Effect.Effect<ToolResult.ToolResult, unknown, unknown> => {
    const called = Effect.suspend(() => {
      entry.state = "called"
      return Tool.runCall(tool, entry.job.call)
    })
    if (onStart === undefined) return called
    const { call } = entry.job
    const allowed = Effect.catchDefect(
      Effect.suspend(() => onStart({ index: entry.index, tool, call })),
      (cause) =>
        Effect.fail(new ExecutorError.StartPanicked({ call: call.id, value: ToolError.defectValue(cause), cause }))
    )
    return Effect.andThen(allowed, called)
  }

  const resultOf = (
    entry: Entry,
    tool: Tool.Any,
    started: boolean,
    exit: Exit.Exit<ToolResult.ToolResult, unknown>
  ): Final<unknown>["result"] =>
    Exit.isSuccess(exit)
      ? Result.succeed(exit.value)
      : Result.fail(
          Option.getOrElse(ToolError.failureOf(tool.name, exit.cause), () =>
            cancelled
              ? new ExecutorError.Cancelled({ call: entry.job.call.id, started })
              : new ExecutorError.Interrupted({ tool: tool.name })
          )
        )

  const launch = (entry: Entry): void => {
    const { call, tool } = entry.job
    entry.state = "placed"
    if (tool === undefined) {
      end(entry, Result.fail(new ExecutorError.NoTool({ call: call.id })))
      return
    }
    const running = run(entry, tool)
    // What the tools and the hook need is in the context: the signatures of `Executor` ask for it.
    const context = base.pipe(
      Context.add(ToolCall.ToolCall, call),
      Context.add(Progress.Progress, progressOf(entry))
    ) as Context.Context<unknown>
    const fiber = Effect.runForkWith(context)(eager ? running : Effect.andThen(Effect.yieldNow, running))
    entry.fiber = fiber
    fiber.addObserver((exit) => end(entry, resultOf(entry, tool, entry.state === "called", exit)))
    // The call itself may have cancelled its batch before there was a fiber to interrupt.
    if (cancelled) fiber.interruptUnsafe()
  }

  const launchAll = (): void => {
    while (!cancelled) {
      const index = turns.next()
      const entry = index === undefined ? undefined : entries[index]
      if (entry === undefined) return
      launch(entry)
    }
  }

  const cancel = (): void => {
    if (cancelled) return
    cancelled = true
    drained?.openUnsafe()
    for (const entry of entries) {
      if (entry.state === "waiting") {
        end(entry, Result.fail(new ExecutorError.Cancelled({ call: entry.job.call.id, started: false })))
      } else {
        entry.fiber?.interruptUnsafe()
      }
    }
  }

  const filled = Effect.callback<void>((resume) => {
    // The scheduler may have let a call come between looking and waiting.
    if (events.length > 0 || closed) return resume(Effect.void)
    wake = () => {
      wake = undefined
      resume(Effect.void)
    }
    return Effect.sync(() => {
      wake = undefined
    })
  })
  const take: Batch["take"] = Effect.suspend(() => {
    if (untaken === 0 || closed) return Cause.done()
    const event = events.shift()
    if (event === undefined) return Effect.andThen(filled, take)
    if (events.length < backlog) drained?.openUnsafe()
    if (event._tag === "Progress") {
      const onUpdate = entries[event.index]?.job.onUpdate
      return onUpdate === undefined ? Effect.succeed(event) : Effect.as(onUpdate(event.update), event)
    }
    untaken--
    turns.release(event.index)
    launchAll()
    return Effect.succeed(event)
  })

  // Any end of the signal stops the batch, its failure too.
  const watch =
    options.cancelWhen === undefined
      ? undefined
      : Effect.runForkWith(services)(Effect.onExit(options.cancelWhen, () => Effect.sync(cancel)))

  const close = Effect.suspend(() => {
    closed = true
    cancel()
    events.length = 0
    wake?.()
    const fibers: Array<Fiber.Fiber<unknown, unknown>> = watch === undefined ? [] : [watch]
    for (const { fiber } of entries) if (fiber !== undefined) fibers.push(fiber)
    return fibers.length === 0 ? Effect.void : Fiber.interruptAll(fibers)
  })

  launchAll()
  return { take, cancel, close }
}

/** Who may start: hands out positions within the bound, and takes back the place of each when it is done. */
const makeTurns = (segments: ReadonlyArray<Plan.Segment>, bound: number) => {
  const following = new Map<number, number>()
  for (const chain of segments.flat()) {
    let before: number | undefined
    for (const index of chain) {
      if (before !== undefined) following.set(before, index)
      before = index
    }
  }
  let segment = -1
  let left = 0
  let placed = 0
  let ready: Array<number> = []

  const advance = (): void => {
    segment++
    const chains = segments[segment] ?? []
    ready = chains.flatMap((chain) => chain.slice(0, 1))
    left = chains.reduce((sum, chain) => sum + chain.length, 0)
  }
  advance()

  return {
    next: (): number | undefined => {
      if (placed >= bound || ready.length === 0) return undefined
      placed++
      return ready.shift()
    },
    release: (index: number): void => {
      placed--
      left--
      const follower = following.get(index)
      if (follower !== undefined) ready.push(follower)
      else if (left === 0) advance()
    }
  }
}
