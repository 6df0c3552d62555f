/**
 * Running calls, kept in the memory of this process: interprets `RunState`.
 *
 * Every run is a fiber of this layer's scope; closing it stops and awaits them all. Questions, clocks and the attachment
 * are fields of the run, not of a request. What a tool needs to ask is put together in `ServedElicitor`.
 */
import type { ToolResult } from "@agenttool/core"
import * as Elicitor from "@agenttool/core/Elicitor"
import * as Form from "@agenttool/core/Form"
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import * as Asking from "./Asking.ts"
import * as CallResult from "./CallResult.ts"
import * as Calls from "./Calls.ts"
import * as Capabilities from "./Capabilities.ts"
import * as HostContext from "./HostContext.ts"
import * as McpSession from "./McpSession.ts"
import * as Registry from "./Registry.ts"
import * as RunState from "./RunState.ts"
import * as ServedElicitor from "./ServedElicitor.ts"
import * as Settings from "./Settings.ts"
import * as StateNames from "./StateNames.ts"
import * as StopReason from "./StopReason.ts"
import * as Wire from "./Wire.ts"

/** A run: what is fixed, what the state machine says, and what is alive. */
interface Run {
  readonly id: string
  readonly request: Calls.CallRequest
  readonly served: Registry.Served
  readonly call: ToolCall.Call
  readonly replies: Map<string, Deferred.Deferred<Asking.Reply, Asking.Refused>>
  readonly early: Map<string, Schema.Json>
  readonly events: Array<RunState.Event>
  state: RunState.RunState
  busy: boolean
  asked: number
  updates: number
  stopping: StopReason.StopReason | undefined
  attachment: Calls.Attachment | undefined
  waiter: Deferred.Deferred<Calls.Turn> | undefined
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

/** The layer. Reads `Settings` and `StateNames` when it is built. */
export const layer: Layer.Layer<Calls.Calls, never, Registry.Registry> = Layer.effect(
  Calls.Calls,
  Effect.gen(function* () {
    const settings = yield* Settings.Settings
    const names = yield* StateNames.StateNames
    const registry = yield* Registry.Registry
    const clock = yield* Clock.Clock
    const base = yield* HostContext.capture
    const fibers = yield* FiberSet.make<unknown, unknown>()

    const compile = yield* Form.makeCompiler({ capacity: keptForms })
    const abandonMillis = Duration.toMillis(settings.abandonAfter)
    const runs = new Set<Run>()
    // Filed in the order of their deadlines, since every call waits equally long.
    const parked = new Map<string, { readonly run: Run; readonly deadline: number }>()
    const parkedPer = new Map<string, number>()
    const somethingParked = Latch.makeUnsafe(false)
    let calls = 0

    const fork = (effect: Effect.Effect<unknown, unknown>, context: Context.Context<never>) => {
      const fiber = Effect.runForkWith(context)(effect)
      FiberSet.addUnsafe(fibers, fiber)
      return fiber
    }

    // ----- the state machine

    const dispatch = (run: Run, event: RunState.Event): void => {
      run.events.push(event)
      if (run.busy) return
      run.busy = true
      for (let next = run.events.shift(); next !== undefined; next = run.events.shift()) {
        const [state, actions] = RunState.step(run.state, next, settings)
        run.state = state
        for (const action of actions) perform(run, action)
      }
      run.busy = false
    }

    const perform = (run: Run, action: RunState.Action): void => {
      switch (action._tag) {
        case "Gather":
          fork(Effect.andThen(Effect.yieldNow, close(run)), base)
          return
        case "Park":
          parked.set(action.state, { run, deadline: clock.currentTimeMillisUnsafe() + abandonMillis })
          countParked(run, 1)
          run.attachment = undefined
          somethingParked.openUnsafe()
          // It was given time to end; nobody will be there to go on with it.
          if (run.stopping !== undefined) stop(run, run.stopping)
          return
        case "Unpark":
          parked.delete(action.state)
          countParked(run, -1)
          return
        case "Reply": {
          const waiter = run.waiter
          run.waiter = undefined
          run.attachment = undefined
          if (waiter !== undefined) Deferred.doneUnsafe(waiter, Exit.succeed(action.turn))
          return
        }
        case "Deliver":
          settle(run, action.id, Exit.succeed(Asking.response(action.response)))
          return
        case "Cancel":
          settle(run, action.id, Exit.succeed(Asking.unasked))
          return
        case "Refuse":
          settle(run, action.id, Exit.fail(Asking.refused(action.why, settings)))
          return
        case "Interrupt":
          if (run.fiber !== undefined) StopReason.interrupt(run.fiber, action.reason)
          return
        case "Close":
          runs.delete(run)
          return
      }
    }

    const settle = (run: Run, id: string, exit: Exit.Exit<Asking.Reply, Asking.Refused>): void => {
      const reply = run.replies.get(id)
      run.replies.delete(id)
      if (reply !== undefined) Deferred.doneUnsafe(reply, exit)
    }

    const close = (run: Run) =>
      Effect.sync(() => {
        const owner = ownerOf(run)
        const room =
          parked.size < settings.maxParked &&
          (parkedPer.get(owner) ?? 0) < (owner === "" ? Infinity : settings.maxParkedPerSession)
        dispatch(run, { _tag: "Closes", state: names.issue(run.id, run.state.round + 1), room })
      })

    // The bound per session falls on the session where there is one, else on the principal.
    const ownerOf = ({ request: { binding } }: Run): string =>
      binding.session !== undefined
        ? `session ${binding.session}`
        : binding.principal !== undefined
          ? `principal ${binding.principal}`
          : ""

    const countParked = (run: Run, change: 1 | -1): void => {
      const owner = ownerOf(run)
      const count = (parkedPer.get(owner) ?? 0) + change
      if (count === 0) parkedPer.delete(owner)
      else parkedPer.set(owner, count)
    }

    const stop = (run: Run, reason: StopReason.StopReason): void =>
      dispatch(run, { _tag: "Stops", reason, result: CallResult.stopped(run.request.tool, StopReason.text(reason)) })

    // ----- abandonment: one fiber for all parked calls

    yield* Effect.forkScoped(
      Effect.forever(
        Effect.suspend(() => {
          const [first] = parked.values()
          if (first === undefined) {
            somethingParked.closeUnsafe()
            return somethingParked.await
          }
          const left = first.deadline - clock.currentTimeMillisUnsafe()
          if (left > 0) return Effect.sleep(left)
          stop(first.run, "Abandoned")
          return Effect.void
        })
      )
    )

    // ----- what a run does

    const ask = (run: Run, asked: Asking.Asked): Effect.Effect<Asking.Reply, Asking.Refused> =>
      Effect.suspend(() => {
        const id = asked.key ?? `elicit_${++run.asked}`
        if (run.replies.has(id)) return Effect.fail(Asking.keyInUse(id))
        if (asked.key !== undefined && Asking.looksCounted(id)) return Effect.fail(Asking.keyLooksCounted(id))
        const early = run.early.get(id)
        run.early.delete(id)
        if (early !== undefined && asked.fits(early)) return Effect.succeed(Asking.response(early))
        const question: Calls.InputRequest = { id, method: asked.method, params: asked.params }
        const reply = Deferred.makeUnsafe<Asking.Reply, Asking.Refused>()
        run.replies.set(id, reply)
        const push = run.attachment?.ask
        return Effect.ensuring(
          push === undefined ? askByTurn(run, question, reply) : askByPush(run, push(question)),
          Effect.sync(() => {
            if (run.replies.get(id) === reply) run.replies.delete(id)
          })
        )
      })

    const askByTurn = (
      run: Run,
      question: Calls.InputRequest,
      reply: Deferred.Deferred<Asking.Reply, Asking.Refused>
    ): Effect.Effect<Asking.Reply, Asking.Refused> =>
      Effect.suspend(() => {
        dispatch(run, { _tag: "Asks", question })
        return Effect.onInterrupt(Deferred.await(reply), () =>
          Effect.sync(() => dispatch(run, { _tag: "Withdraws", id: question.id }))
        )
      })

    // The request stays open while the question is out, and the question is withdrawn when this is interrupted.
    const askByPush = (
      run: Run,
      push: Effect.Effect<Schema.Json, Calls.PushFailed>
    ): Effect.Effect<Asking.Reply, Asking.Refused> =>
      Effect.flatMap(
        Effect.mapError(Effect.timeoutOption(push, settings.abandonAfter), ({ message }) => Asking.pushFailed(message)),
        Option.match({
          onSome: (response) => Effect.succeed(Asking.response(response)),
          onNone: () =>
            Effect.suspend(() => {
              stop(run, "Abandoned")
              return Effect.never
            })
        })
      )

    const report = (run: Run, update: ToolResult.ToolResult): Effect.Effect<void> =>
      Effect.suspend(() => {
        const count = ++run.updates
        const attachment = run.attachment
        return attachment === undefined ? Effect.void : attachment.progress(CallResult.progress(update, count))
      })

    const execute = (run: Run) =>
      Tool.runCall(run.served.tool, run.call).pipe(
        Effect.onExit((exit) =>
          Effect.flatMap(resultOf(run, exit), (result) => Effect.sync(() => dispatch(run, { _tag: "Ends", result })))
        )
      )

    const resultOf = (run: Run, exit: Exit.Exit<ToolResult.ToolResult, unknown>): Effect.Effect<Schema.Json> => {
      const { tool } = run.served
      const legacy = isLegacy(run.request.protocolVersion)
      const shown = (result: CallResult.CallResult): Schema.Json =>
        CallResult.bounded(tool.name, legacy ? CallResult.forLegacy(tool, result) : result, settings.maxResultBytes)
      if (Exit.isSuccess(exit)) return Effect.sync(() => shown(CallResult.success(tool, exit.value)))
      const failure = ToolError.failureOf(tool.name, exit.cause)
      if (Option.isNone(failure)) {
        const reason = Option.getOrUndefined(StopReason.of(exit.cause))
        return Effect.sync(() => CallResult.stopped(tool.name, StopReason.text(reason)))
      }
      const failed = failure.value
      if (!(failed instanceof ToolError.ToolDefect) || settings.showDefects) {
        return Effect.sync(() => shown(CallResult.failure(tool, failed)))
      }
      const reference = randomBytes(4).toString("hex")
      return Effect.as(
        Effect.logError(Wire.defectText(tool.name, reference), exit.cause),
        CallResult.defect(tool.name, reference)
      )
    }

    const contextOf = (run: Run, request: Context.Context<never>): Context.Context<never> => {
      const host = HostContext.merge(base, run.served.context, request).pipe(
        Context.add(ToolCall.ToolCall, run.call),
        Context.add(Progress.Progress, { update: (update) => report(run, update) })
      )
      const { capabilities } = run.request
      return Capabilities.offersElicitation(capabilities)
        ? Context.add(
            host,
            Elicitor.Elicitor,
            ServedElicitor.make({ capabilities, compile, ask: (question) => ask(run, question) })
          )
        : host
    }

    const waitForTurn = (run: Run, waiter: Deferred.Deferred<Calls.Turn>) =>
      Effect.onInterrupt(Deferred.await(waiter), () => Effect.sync(() => dispatch(run, { _tag: "Cancels" })))

    const attach = (run: Run, attachment: Calls.Attachment): Deferred.Deferred<Calls.Turn> => {
      const waiter = Deferred.makeUnsafe<Calls.Turn>()
      run.waiter = waiter
      run.attachment = attachment
      return waiter
    }

    const sameBinding = (left: Calls.Binding, right: Calls.Binding): boolean =>
      left.session === right.session && left.principal === right.principal

    const matches =
      (which: Calls.Which | "all") =>
      (run: Run): boolean => {
        if (which === "all") return true
        if ("session" in which) return run.request.binding.session === which.session
        if ("registration" in which) return run.served.registration === which.registration
        return parked.get(which.state)?.run === run
      }

    const select = (which: Calls.Which | "all"): ReadonlyArray<Run> => Array.from(runs).filter(matches(which))

    const awaitFibers = (selected: ReadonlyArray<Run>) =>
      Effect.forEach(selected, (run) => (run.fiber === undefined ? Effect.void : Fiber.await(run.fiber)), {
        concurrency: "unbounded",
        discard: true
      })

    const service: Calls.Calls["Service"] = {
      start: (request, attachment) =>
        Effect.withFiber((fiber) => {
          const served = registry.get(request.tool)
          if (served === undefined) return Effect.fail(new Calls.UnknownTool({ tool: request.tool }))
          const call = ToolCall.fromValue({ id: `mcp_${++calls}`, tool: request.tool, value: request.arguments })
          const fault = Tool.faultOf(served.tool, call)
          if (fault !== undefined) {
            const refused: Calls.Turn = { _tag: "Done", result: CallResult.failure(served.tool, fault) }
            return Effect.as(McpSession.ended, refused)
          }
          const run: Run = {
            id: String(calls),
            request,
            served,
            call,
            replies: new Map(),
            early: new Map(Object.entries(request.responses)),
            events: [],
            state: RunState.initial(request.capabilities),
            busy: false,
            asked: 0,
            updates: 0,
            stopping: undefined,
            attachment: undefined,
            waiter: undefined,
            fiber: undefined
          }
          const waiter = attach(run, attachment)
          runs.add(run)
          const context = contextOf(run, fiber.context)
          // What a tool needs was in the context of its registration: `McpServer.tools` has asked for it.
          const body = execute(run) as Effect.Effect<unknown, unknown>
          run.fiber = fork(Effect.ensuring(body, McpSession.ended), context)
          // Whatever goes wrong here, nobody waits for ever.
          run.fiber.addObserver(() =>
            dispatch(run, { _tag: "Ends", result: CallResult.stopped(request.tool, StopReason.text(undefined)) })
          )
          return waitForTurn(run, waiter)
        }),
      resume: (reply, attachment) =>
        Effect.suspend(() => {
          const entry = parked.get(reply.state)
          if (entry === undefined) {
            const why = Option.isSome(names.read(reply.state)) ? "spent" : "unknown"
            return Effect.fail(new Calls.NotWaiting({ tool: reply.tool, why }))
          }
          const { run } = entry
          if (run.request.tool !== reply.tool || !sameBinding(run.request.binding, reply.binding)) {
            return Effect.fail(new Calls.NotWaiting({ tool: reply.tool, why: "foreign" }))
          }
          const waiter = attach(run, attachment)
          dispatch(run, { _tag: "Returns", responses: reply.responses, capabilities: reply.capabilities })
          return waitForTurn(run, waiter)
        }),
      interrupt: (which, reason) =>
        Effect.sync(() => {
          const selected = select(which)
          for (const run of selected) stop(run, reason)
          return selected.length
        }),
      drain: Effect.fnUntraced(function* (which, reason, grace) {
        const selected = select(which)
        for (const run of selected) {
          run.stopping = reason
          if (run.state.phase._tag !== "Attached") stop(run, reason)
        }
        yield* Effect.timeoutOption(awaitFibers(selected), grace)
        for (const run of selected) stop(run, reason)
        yield* awaitFibers(selected)
      }),
      count: Effect.map(FiberSet.size(fibers), (live) => ({ ...countOf(Array.from(runs)), fibers: live })),
      countOf: (which) => Effect.sync(() => countOf(select(which)))
    }

    // Added after the fibers, so run before they are interrupted: each then ends for a reason.
    yield* Effect.addFinalizer(() => service.drain("all", "ServerClosed", 0))
    return service
  })
)

// Forms that are kept compiled: a tool that writes its form where it asks makes a new one in every call.
const keptForms = 256

const isLegacy = (protocolVersion: string): boolean => protocolVersion < Wire.firstModernVersion

const countOf = (runs: ReadonlyArray<Run>): Pick<Calls.Count, "attached" | "parked"> => {
  const attached = runs.filter((run) => run.state.phase._tag === "Attached").length
  return { attached, parked: runs.length - attached }
}
